from weir.models.checkpoints import ModelCard as ModelCard
from weir.models.checkpoints import card as card
from weir.models.checkpoints import cards as cards
from weir.models.encoder import Encoder as Encoder
from weir.models.encoder import Loaded as Loaded
from weir.models.encoder import Stability as Stability
from weir.models.encoder import stability as stability
