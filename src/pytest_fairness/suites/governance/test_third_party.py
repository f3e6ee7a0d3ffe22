"""Do provider and model stay what was declared? From the logs of past runs, and by canary prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fairness import conclude
from pytest_fairness.reports import write_sections
from pytest_fairness.runs.files import shown
from pytest_fairness.runs.folder import has_begun, run_folders
from pytest_fairness.suites.authoring import errors_as_failures
from pytest_fairness.suites.governance import canary, third_party
from pytest_fairness.suites.governance.past_results import conclude_each

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness import RunContext
    from pytest_fairness.suites.governance.conftest import GovernanceOptions
    from pytest_fairness.suites.governance.third_party import ServiceInRun

    Services = dict[str, list[ServiceInRun]]

pytestmark = pytest.mark.fairness(
    module="iso42001-thirdparty", controls={"A.10": "supporting", "A.6.2.6": "supporting"}
)


@pytest.mark.usefixtures("asked_runs")
@pytest.mark.fairness(id="THRD-MODEL-001")
def test_the_declared_model_answers(
    services: Services, governance: GovernanceOptions, fairness_run: RunContext
) -> None:
    """The model that answers is the declared one, and its version is that of the runs before."""
    with errors_as_failures():
        configured = third_party.configured_models(fairness_run.settings.endpoints_file)
    findings = [
        third_party.model_finding(name, runs, governance.third_party, configured.get(name))
        for name, runs in services.items()
    ]
    conclude_each(findings or [third_party.nothing_asked("model")])


@pytest.mark.usefixtures("asked_runs")
@pytest.mark.fairness(id="THRD-FING-001")
def test_the_fingerprint_stays(services: Services, governance: GovernanceOptions) -> None:
    """What the provider calls the state of its system is known from earlier runs."""
    with errors_as_failures():
        findings = [
            third_party.fingerprint_finding(*service, governance.third_party)
            for service in services.items()
        ]
    conclude_each(findings or [third_party.nothing_asked("fingerprint")])


@pytest.mark.usefixtures("asked_runs")
@pytest.mark.fairness(id="THRD-PARM-001")
def test_parameters_arrive(services: Services) -> None:
    """No parameter of a request was dropped or refused."""
    with errors_as_failures():
        findings = [third_party.parameter_finding(*service) for service in services.items()]
    conclude_each(findings or [third_party.nothing_asked("parameters")])


@pytest.mark.fairness(id="THRD-CANA-001")
@pytest.mark.fairness_grid(
    template=canary.ASKED,
    groups={"canary": {"any": list(canary.canary_prompts().values())}},
    name_slot="prompt",
    names=(len(canary.canary_prompts()),),
    repetitions=1,
    parameters={"temperature": 0},
)
def test_canary_prompts_are_answered_alike(
    trials: pd.DataFrame, governance: GovernanceOptions, fairness_run: RunContext
) -> None:
    """Neutral prompts get the replies that they got before."""
    options = governance.third_party
    folder = fairness_run.store.directory
    with errors_as_failures():
        now = canary.canary_replies(trials, folder.name)
        kept = shown(canary.write_canary(folder, now), fairness_run.root)
        others = [
            run for run in run_folders(fairness_run.settings.run_dir) if run.name != folder.name
        ]
        earlier = list(filter(has_begun, others))
        before, about = canary.reference_replies(now.endpoint, options, fairness_run.root, earlier)
        if (section := canary.canary_section(now, before)) is not None:
            write_sections(folder, section.id.replace("-", "_"), section)
    conclude(canary.canary_finding(now, before, about, options.tolerance, trials, kept))
