"""Use services that others run: embedding and re-ranking APIs, chat models, search servers, programs."""
