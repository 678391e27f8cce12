from . import dot_product as dot_product
from . import simd as simd
from . import term_maxima as term_maxima
