"""A deployment on Azure: OpenAI's chat completions at an address of its own.

https://learn.microsoft.com/azure/ai-services/openai/reference
"""

from __future__ import annotations

import re
from urllib.parse import quote

from pytest_fairness.documents import Misplaced
from pytest_fairness.endpoints.config import ProviderConfig
from pytest_fairness.endpoints.openai import ChatEndpoint
from pytest_fairness.model import JSON


class AzureConfig(ProviderConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of type ``azure``; ``model`` is the deployment's name, so that its price has to be
    given.
    """

    base_url: str
    api_version: str = "2024-10-21"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"[\w.\-]{1,40}", self.api_version):
            raise Misplaced(
                f"api_version must be like 2024-10-21, not {self.api_version!r}", "api_version"
            )

    @property
    def key_variable(self) -> str | None:
        return self.api_key_env or "AZURE_API_KEY"


class AzureEndpoint(ChatEndpoint):
    """The deployment called ``model`` of the resource at ``base_url``."""

    hint = "is base_url right, and the name of the deployment?"
    key_header = ("api-key", "")

    def __init__(self, config: AzureConfig) -> None:
        super().__init__(config)
        self.api_version = config.api_version

    @property
    def url(self) -> str:
        deployment = quote(self.model, safe="")
        path = f"openai/deployments/{deployment}/chat/completions"
        return f"{self.base_url}/{path}?api-version={self.api_version}"

    def identity(self) -> dict[str, JSON]:
        return {**super().identity(), "api_version": self.api_version}
