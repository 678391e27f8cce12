from . import card as card
from . import catalogue as catalogue
from . import fetch as fetch
from . import load as load
from . import names as names
from . import scoring_rules as scoring_rules
