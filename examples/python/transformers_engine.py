"""Private text by dpinfer's sampler from the logits of a Hugging Face model.

    pip install dpinfer -r requirements-heavy.txt
    python transformers_engine.py [MODEL] [-B 8] [-n 40] [--epsilon 10] [--delta 1e-5] [--together]

MODEL is a name on the hub, a folder, or a .gguf file. Without it a tiny model of random weights is
made, which writes nonsense: it shows the calls. Each record has a pass of its own; --together has
all of them in one padded batch, which is faster and NOT PRIVATE where rows depend on each other
(rows.py says why). The script looks at that first.
"""

import pathlib

import rows
import torch
import transformers


class Rows:
    """Prompts in one batch, with padding on the left, and the caches of what was read."""

    def __init__(self, model, prompts):
        longest = max(map(len, prompts))
        ids = torch.zeros((len(prompts), longest), dtype=torch.long)
        self._mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, longest - len(prompt):] = torch.tensor(prompt)
            self._mask[row, longest - len(prompt):] = 1
        self._model, self._cache = model, transformers.DynamicCache()
        self._forward(ids)

    @torch.inference_mode()
    def _forward(self, ids):
        positions = (self._mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1]:]
        out = self._model(input_ids=ids, attention_mask=self._mask, position_ids=positions,
                          past_key_values=self._cache, use_cache=True, logits_to_keep=1)
        self.logits = out.logits[:, -1].float().numpy()

    def append(self, token):
        self._mask = torch.cat([self._mask, torch.ones_like(self._mask[:, :1])], dim=1)
        self._forward(torch.full_like(self._mask[:, :1], token))


def open_model(name):
    """A model and its tokenizer."""
    if name is None:
        torch.manual_seed(1)
        config = transformers.LlamaConfig(
            vocab_size=384, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=2048)
        return transformers.LlamaForCausalLM(config).eval(), transformers.ByT5Tokenizer()
    path, more = pathlib.Path(name), {}
    if path.suffix == ".gguf":
        name, more = str(path.parent), {"gguf_file": path.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(name, **more)
    model = transformers.AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32, **more)
    return model.eval(), tokenizer


class Engine:
    """A model with its tokenizer, as rows.py wants an engine."""

    def __init__(self, name):
        self._model, self._tokenizer = open_model(name)
        self.n_vocab = self._model.config.vocab_size

    def prompt(self, answer):
        """The task, and how the answer begins; in the model's chat format, if it has one."""
        tokenizer = self._tokenizer
        if tokenizer.chat_template is None:
            return tokenizer.encode(f"{rows.TASK}\n\n{answer}", add_special_tokens=False)
        said = tokenizer.apply_chat_template([{"role": "user", "content": rows.TASK}],
                                             tokenize=False, add_generation_prompt=True)
        return tokenizer.encode(said + answer, add_special_tokens=False)

    def rows(self, prompts):
        return Rows(self._model, prompts)

    def is_end(self, token):
        tokenizer = self._tokenizer
        return token == tokenizer.eos_token_id or '"' in tokenizer.decode([token])

    def text(self, tokens):
        return self._tokenizer.decode(tokens, skip_special_tokens=True)


if __name__ == "__main__":
    rows.main(lambda asked: Engine(asked.model), "batch", nargs="?")
