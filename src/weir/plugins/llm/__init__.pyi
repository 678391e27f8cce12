from weir.plugins.llm.chat import ChatModel as ChatModel
from weir.plugins.llm.chat import default_model as default_model
from weir.plugins.llm.panel import JudgeSettings as JudgeSettings
from weir.plugins.llm.reordering import WindowShape as WindowShape
