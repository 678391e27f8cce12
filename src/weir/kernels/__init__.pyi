from . import dot_product as dot_product
from . import simd as simd
