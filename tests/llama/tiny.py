"""A language model small enough for a test: 2 layers of 128, random weights, about 2 MB, written in 0.1 s.

llama.cpp runs it as any other model (attention, KV cache, batching, sampling), so the engine tested is the
real one. Its text does not matter, but its length does: the end-of-text token must never be drawn, so that
`max_tokens` alone decides how long an answer is. Therefore each word's embedding is also the output row of
its successor in `WORDS` (logits of about 60 for the successor, small ones for other words); special tokens
have rows of zeros.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

from fairq.load.prompt import WORDS

LAYERS, WIDTH, HEAD, CONTEXT = 2, 128, 32, 65536
UNKNOWN, START, END = 0, 1, 2
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


def vocabulary() -> list[tuple[str, float, gguf.TokenType]]:
    """(text, score, type) of every token. Higher scores merge first.

    A SentencePiece tokeniser joins neighbours step by step, so a word is one token only if each of its
    prefixes is one too.
    """
    special = [
        ("<unk>", gguf.TokenType.UNKNOWN),
        ("<s>", gguf.TokenType.CONTROL),
        ("</s>", gguf.TokenType.CONTROL),
    ]
    tokens = [(text, 0.0, kind) for text, kind in special]
    tokens += [(f"<0x{byte:02X}>", 0.0, gguf.TokenType.BYTE) for byte in range(256)]
    prefixes = ["▁" + word[:n] for word in WORDS for n in range(1, len(word) + 1)]
    normal = [*map(chr, range(33, 127)), "▁", *prefixes]
    tokens += [(text, -float(rank), gguf.TokenType.NORMAL) for rank, text in enumerate(dict.fromkeys(normal))]
    return tokens


def weights(tokens: list[str]) -> dict[str, NDArray[np.float32]]:
    """Every tensor of the model by its GGUF name."""
    draw = np.random.default_rng(0)

    def noise(*shape: int, scale: float = 0.02) -> NDArray[np.float32]:
        return (draw.standard_normal(shape) * scale).astype(np.float32)

    embedding = noise(len(tokens), WIDTH, scale=1.0)
    output = np.zeros_like(embedding)
    at = {text: index for index, text in enumerate(tokens)}
    chain = [at["▁" + word] for word in WORDS]
    for word, successor in zip(chain, chain[1:] + chain[:1], strict=True):
        output[successor] = 0.5 * embedding[word]
    one = np.ones(WIDTH, np.float32)
    tensors = {"token_embd.weight": embedding, "output.weight": output, "output_norm.weight": one}
    for layer in range(LAYERS):
        shapes = {"attn_q": (WIDTH, WIDTH), "attn_k": (WIDTH // 2, WIDTH), "attn_v": (WIDTH // 2, WIDTH)}
        shapes |= {
            "attn_output": (WIDTH, WIDTH),
            "ffn_gate": (2 * WIDTH, WIDTH),
            "ffn_up": (2 * WIDTH, WIDTH),
        }
        shapes |= {"ffn_down": (WIDTH, 2 * WIDTH)}
        tensors |= {f"blk.{layer}.{name}.weight": noise(*shape) for name, shape in shapes.items()}
        tensors |= {f"blk.{layer}.attn_norm.weight": one, f"blk.{layer}.ffn_norm.weight": one}
    return tensors


def write(path: Path) -> Path:
    """Write the model to `path`."""
    tokens = vocabulary()
    out = gguf.GGUFWriter(path, "llama")
    out.add_name("fairq-tiny")
    out.add_context_length(CONTEXT)
    out.add_embedding_length(WIDTH)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(2 * WIDTH)
    out.add_head_count(WIDTH // HEAD)
    out.add_head_count_kv(WIDTH // HEAD // 2)
    out.add_rope_dimension_count(HEAD)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_vocab_size(len(tokens))
    out.add_file_type(gguf.LlamaFileType.ALL_F32)
    out.add_tokenizer_model("llama")
    out.add_token_list([text for text, _, _ in tokens])
    out.add_token_scores([score for _, score, _ in tokens])
    out.add_token_types([kind for _, _, kind in tokens])
    out.add_unk_token_id(UNKNOWN)
    out.add_bos_token_id(START)
    out.add_eos_token_id(END)
    out.add_add_bos_token(True)
    out.add_chat_template(TEMPLATE)
    for name, tensor in weights([text for text, _, _ in tokens]).items():
        out.add_tensor(name, tensor)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path
