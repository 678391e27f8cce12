"""Questions that scores leave open, such as where relevant documents are lost; begin with `funnel.py`."""
