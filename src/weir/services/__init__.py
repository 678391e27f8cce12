"""Services run by others: embedding and re-ranking APIs, chat models, search servers, programs."""
