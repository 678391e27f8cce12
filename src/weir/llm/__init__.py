"""Language models that answer prompts: one client, prompts as files, answers read with care.

`chat_model.py` a model as a value; `chat_client.py` the protocol of what answers: `hosted_chat.py` a service, asked as
`chat_shapes.py` and `chat_providers.toml` (`chat_provider.py`) say, `local_chat.py` a model in this process, whose
prompts and tokens `chat_form.py` turns into one another;
`conversation.py` many prompts side by side, each answer kept before the next is asked; `prompt.py`, `prompts/` what is
asked; `verdicts.py`, `orderings.py` what an answer says, `expected_score.py` what its log-probabilities say;
`passage_text.py` passages as they are sent, the instructions hidden in them and their echoes in answers.
"""
