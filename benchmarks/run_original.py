"""Runs the original eval offline, in a separate environment, for comparisons with ours.

    python -m venv ENV
    ENV/bin/pip install --no-deps evals==3.0.1.post1
    ENV/bin/pip install openai numpy pyyaml tiktoken chess pydantic tqdm blobfile backoff \
        zstandard lz4 pandas requests anthropic pytest
    ENV/bin/python benchmarks/run_original.py \
        generation/direct/gpt-3.5-turbo cant_do_that_anymore.all

The script replaces two parts that do not affect results: the tokenizer, which would be downloaded
and only counts tokens before a request, and the database connector, which a local run imports but
never uses.
"""

import sys
from importlib import import_module
from types import ModuleType


class WordTokenizer:
    def encode(self, text: str) -> list[str]:
        return text.split()


def main() -> None:
    snowflake, connector = ModuleType("snowflake"), ModuleType("snowflake.connector")
    vars(snowflake)["connector"] = connector
    vars(connector)["SnowflakeConnection"] = object
    sys.modules |= {"snowflake": snowflake, "snowflake.connector": connector}
    vars(import_module("tiktoken"))["encoding_for_model"] = lambda _: WordTokenizer()
    import_module("evals.cli.oaieval").main()


if __name__ == "__main__":
    main()
