# `maxsim` needs numba and is imported when it is used first.
from . import maxsim as maxsim
