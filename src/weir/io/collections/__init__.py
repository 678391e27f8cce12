"""Collections: documents, queries and judgments in every layout, and the store of documents."""
