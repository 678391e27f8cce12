"""Requests to services of others: embedding and re-ranking APIs, chat models, search servers, programs."""
