"""Language models that answer prompts: one client, prompts as files, answers read with care.

`chat_model.py` a model as a value; `chat_client.py` the protocol of what answers: `hosted_chat.py` a service, asked as
`chat_shapes.py` and `chat_providers.toml` (`chat_provider.py`) say, `local_chat.py` a model in this process, whose
prompts and tokens `chat_form.py` turns into one another;
`conversation.py` many prompts side by side, each answer kept before the next is asked; `prompt.py`, `prompts/` what is
asked, with the token that its answer has to give; `verdicts.py`, `orderings.py` what an answer says in the line that
begins with it, `expected_score.py` what its log-probabilities say; `passage_text.py` texts of others as they are sent,
and the instructions hidden in them.
"""
