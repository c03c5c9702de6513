"""The engine of the other tests does what they rely on: real usage, exact lengths, slots that are freed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import pytest
from openai import OpenAI
from tests.llama import tiny
from tests.llama.server import LlamaServer

from fairq.load.prompt import WORDS

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def client(llama: LlamaServer) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{llama.url}/v1", api_key="none", max_retries=0, timeout=20) as client:
        yield client


def until(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_the_written_file_is_a_gguf_of_two_megabytes(tmp_path: Path) -> None:
    path = tiny.write(tmp_path / "tiny.gguf")
    reader = gguf.GGUFReader(path)
    assert path.stat().st_size < 4 << 20
    assert {tensor.name for tensor in reader.tensors} >= {"token_embd.weight", "blk.1.ffn_down.weight"}


def test_a_prompt_of_n_words_has_n_tokens_and_one_to_start_with(client: OpenAI) -> None:
    answer = client.completions.create(model="fairq-tiny", prompt=" ".join(WORDS), max_tokens=1)
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(WORDS) + 1


@pytest.mark.parametrize("length", [1, 7, 500])
def test_max_tokens_alone_decides_the_length_of_an_answer(client: OpenAI, length: int) -> None:
    chat = client.chat.completions.create(
        model="fairq-tiny", messages=[{"role": "user", "content": "the of and"}], max_tokens=length
    )
    text = client.completions.create(model="fairq-tiny", prompt="the of and", max_tokens=length)
    assert chat.usage is not None
    assert text.usage is not None
    assert (chat.usage.completion_tokens, chat.choices[0].finish_reason) == (length, "length")
    assert (text.usage.completion_tokens, text.choices[0].finish_reason) == (length, "length")
    assert len(text.choices[0].text.split()) == length


def test_a_chat_stream_ends_with_a_chunk_that_holds_usage_and_no_choice(client: OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="fairq-tiny",
            messages=[{"role": "user", "content": "the of and"}],
            max_tokens=20,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    usage = [chunk for chunk in chunks if chunk.usage is not None]
    assert usage == chunks[-1:]
    assert usage[0].choices == []
    assert usage[0].usage is not None
    assert usage[0].usage.completion_tokens == 20
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
    assert len(text.split()) == 20


def test_a_completion_stream_holds_usage_in_the_chunk_with_the_finish_reason(client: OpenAI) -> None:
    chunks = list(client.completions.create(model="fairq-tiny", prompt="the of and", max_tokens=20, stream=True))
    usage = [chunk for chunk in chunks if chunk.usage is not None]
    assert usage == chunks[-1:]
    assert usage[0].choices[0].finish_reason == "length"
    assert usage[0].usage is not None
    assert usage[0].usage.completion_tokens == 20


def test_a_client_that_leaves_frees_its_slot(llama: LlamaServer, client: OpenAI) -> None:
    before = llama.metric("tokens_predicted_total")
    stream = client.completions.create(model="fairq-tiny", prompt="the", max_tokens=4000, stream=True)
    for _ in range(3):
        next(stream)
    assert llama.busy_slots() == 1
    stream.close()
    assert until(lambda: llama.busy_slots() == 0)
    assert llama.metric("tokens_predicted_total") - before < 4000


@pytest.mark.parametrize("llama", [2], indirect=True)
def test_no_more_requests_run_at_once_than_there_are_slots(llama: LlamaServer) -> None:
    with (
        OpenAI(base_url=f"{llama.url}/v1", api_key="none", max_retries=0, timeout=20) as client,
        ThreadPoolExecutor(6) as pool,
    ):
        answers = [
            pool.submit(client.completions.create, model="fairq-tiny", prompt="the", max_tokens=300) for _ in range(6)
        ]
        busy = set()
        while not all(answer.done() for answer in answers):
            busy.add(llama.busy_slots())
        assert [len(answer.result().choices[0].text.split()) for answer in answers] == [300] * 6
    assert max(busy) == 2
