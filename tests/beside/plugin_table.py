"""Plugins and switches that the small project is run with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin with its main switches.

    Args:
        distributions: Names on the package index: the plugin, and what it cannot be loaded without.
        switches: Command line, without the plugin's loading.
        together: Whether it is loaded with all others; False where it needs a run of its own, such as for another
            output.
    """

    distributions: str
    switches: str = ""
    together: bool = True

    @property
    def id(self) -> str:
        """Name of the test."""
        return " ".join(filter(None, (self.distributions, self.switches)))


#: The run is equal to the run without, or a usage error.
PLUGINS = [
    Plugin("allure-pytest", "--alluredir=allure"),
    Plugin("anyio"),
    Plugin("faker"),
    Plugin("flaky"),
    Plugin("flaky", "--force-flaky --max-runs=5", together=False),
    Plugin("hypothesis", "--hypothesis-seed=1"),
    Plugin("inline-snapshot", together=False),
    Plugin("nbmake", "--nbmake", together=False),
    Plugin("nbval", "--nbval"),
    Plugin("pyfakefs"),
    Plugin("pytest-aiohttp pytest-asyncio"),
    Plugin("pytest-antilru", together=False),
    Plugin("pytest-assume"),
    Plugin("pytest-asyncio"),
    Plugin("pytest-asyncio", "--asyncio-mode=auto", together=False),
    Plugin("pytest-atomic", together=False),
    Plugin("pytest-beartype-tests", together=False),
    Plugin("pytest-base-url", "--base-url=http://127.0.0.1:1"),
    Plugin("pytest-bdd"),
    Plugin("pytest-benchmark", "--benchmark-disable"),
    Plugin("pytest-check"),
    Plugin("pytest-clarity", together=False),
    Plugin("pytest-cov", "--cov=. --cov-report="),
    Plugin("pytest-csv", "--csv=out.csv", together=False),
    Plugin("pytest-custom-exit-code"),
    Plugin("pytest-custom-report", together=False),
    Plugin("pytest-datadir"),
    Plugin("pytest-dependency"),
    Plugin("pytest-depends", together=False),
    Plugin("pytest-describe"),
    Plugin("pytest-doctestplus", "--doctest-plus", together=False),
    Plugin("pytest-dotenv", together=False),
    Plugin("pytest-durations", together=False),
    Plugin("pytest-dynamicrerun", together=False),
    Plugin("pytest-emoji", "--emoji", together=False),
    Plugin("pytest-env"),
    Plugin("pytest-error-for-skips", "--error-for-skips", together=False),
    Plugin("pytest-excel", "--excelreport=out.xlsx", together=False),
    Plugin("pytest-fail-slow", "--fail-slow=50s"),
    Plugin("pytest-flakefinder", "--flake-finder --flake-runs=2", together=False),
    Plugin("pytest-forked", "--forked", together=False),
    Plugin("pytest-freezer"),
    Plugin("pytest-github-actions-annotate-failures"),
    Plugin("pytest-harvest pytest-xdist", together=False),
    Plugin("pytest-html pytest-metadata", "--html=out.html"),
    Plugin("pytest-httpserver"),
    Plugin("pytest-httpx"),
    Plugin("pytest-icdiff"),
    Plugin("pytest-instafail", "--instafail", together=False),
    Plugin("pytest-json-ctrf", "--ctrf=out-ctrf.json"),
    Plugin("pytest-json-report", "--json-report"),
    Plugin("pytest-lazy-fixtures"),
    Plugin("pytest-loop", "--loop=1", together=False),
    Plugin("pytest-md-report", "--md-report"),
    Plugin("pytest-memray", "--memray", together=False),
    Plugin("pytest-metadata"),
    Plugin("pytest-mock"),
    Plugin("pytest-nunit", "--nunit-xml=nunit.xml", together=False),
    Plugin("pytest-order"),
    Plugin("pytest-pretty", together=False),
    Plugin("pytest-print"),
    Plugin("pytest-progress pytest-xdist", "--show-progress", together=False),
    Plugin("pytest-race"),
    Plugin("pytest-random-order", "--random-order", together=False),
    Plugin("pytest-randomly"),
    Plugin("pytest-randomly", "-p no:random_order --randomly-seed=3", together=False),
    Plugin("pytest-recording", "--block-network"),
    Plugin("pytest-regressions"),
    Plugin("pytest-remotedata"),
    Plugin("pytest-repeat", "--count=2", together=False),
    Plugin("pytest-replay", "--replay-record-dir=replay", together=False),
    Plugin("pytest-reportlog", "--report-log=out.log"),
    Plugin("pytest-reraise"),
    Plugin("pytest-rerunfailures", "--reruns=5", together=False),
    Plugin("pytest-retry", "--retries=5", together=False),
    Plugin("pytest-reverse", "--reverse", together=False),
    Plugin("pytest-rich", "--rich", together=False),
    Plugin("pytest-run-parallel", "--parallel-threads=2", together=False),
    Plugin("pytest-skip-slow", together=False),
    Plugin("pytest-snapshot", together=False),
    Plugin("pytest-socket", "--disable-socket --allow-unix-socket"),
    Plugin("pytest-spec", "--spec", together=False),
    Plugin("pytest-subprocess"),
    Plugin("pytest-sugar", together=False),
    Plugin("pytest-suite-timeout"),
    Plugin("pytest-testdox", "--testdox", together=False),
    Plugin("pytest-testmon", "--testmon", together=False),
    Plugin("pytest-threadleak", "--threadleak", together=False),
    Plugin("pytest-timeout", "--timeout=50"),
    Plugin("pytest-timeout", "--timeout=50 --timeout-method=thread", together=False),
    Plugin("pytest-tldr", together=False),
    Plugin("pytest-trio"),
    Plugin("pytest-variables"),
    Plugin("pytest-xdist-worker-stats pytest-xdist", "-n0", together=False),
    Plugin("pytest-xprocess"),
    Plugin("respx"),
    Plugin("syrupy"),
    Plugin("teamcity-messages", "--teamcity", together=False),
    Plugin("time-machine"),
    Plugin("typeguard"),
    Plugin("xdoctest", "--xdoctest", together=False),
]

TOGETHER = [plugin for plugin in PLUGINS if plugin.together]

#: Model, distributions and switches.  Whatever these do to a run, none passes without PASS and all calls are recorded.
COMBINATIONS = [
    (model, tuple(plugins.split()), switches)
    for plugins, rows in {
        "pytest-rerunfailures": [
            "--reruns=20",
            "--reruns=2 -x",
            "--reruns=3 --only-rerun=ValueError",
            "--reruns=3 -n2",
        ],
        "pytest-retry": ["--retries=20", "--retries=3 -n2"],
        "flaky": ["--force-flaky --max-runs=20", "--force-flaky --max-runs=4 --min-passes=2"],
        "pytest-rerunfailures pytest-timeout": ["--reruns=3 --timeout=20 -n2"],
        "pytest-rerunfailures pytest-cov": ["--reruns=3 --cov=. --cov-report="],
        "pytest-rerunfailures pytest-randomly": ["--reruns=5 --randomly-seed=1"],
        "pytest-retry pytest-html pytest-metadata": ["--retries=5 --html=a.html"],
        "pytest-dynamicrerun": ["--dynamic-rerun-attempts=5"],
        "pytest-rerun-all": ["--rerun-iter=2"],
        "pytest-smart-rerun": ["", "--smart-rerun=3"],
    }.items()
    for switches in rows
    for model in ("unreadable", "dead")
] + [
    (model, tuple(plugins.split()), switches)
    for plugins, switches in [
        ("pytest-check pytest-assume", ""),
        ("pytest-flakefinder", "--flake-finder --flake-runs=3"),
        ("pytest-repeat", "--count=3"),
        ("pytest-repeat", "--count=3 -n2"),
        ("pytest-forked", "--forked -n2"),
        ("pytest-isolate", ""),
        ("pytest-insubprocess", "--insubprocess"),
        ("pytest-fkit", ""),
        ("pytest-zygote", ""),
        ("pytest-zygote", "--zygote=2"),
        ("pytest-subprocessed", "--subprocessed"),
        ("pytest-concurrency", "--concurrency-mode=thread --concurrency-workers=2"),
        ("pytest-run-parallel", "--parallel-threads=2 -n2"),
        ("pytest-run-parallel", "--parallel-threads=3 --iterations=2"),
        ("pytest-asyncio-concurrent", ""),
        ("pytest-custom-exit-code", "--suppress-tests-failed-exit-code"),
        ("pytest-custom-exit-code", "--suppress-no-test-exit-code -k nothing"),
        ("pytest-custom-exit-code", "--suppress-no-test-exit-code -k nothing -n2"),
        ("pytest-csv", "--csv=out.csv -n2"),
        ("pytest-depends", "-n2"),
        ("pytest-ignore-test-results", "--ignore-result-files=*.txt"),
        ("pytest-ignore-flaky", ""),
        ("pytest-exit-status", ""),
        ("pytest-fixture-cache", ""),
        ("pytest-pickle-cache", ""),
        ("pytest-testmon", "--testmon -n2"),
        ("pytest-picked", "--picked"),
        ("pytest-split", "--splits=2 --group=1"),
        ("pytest-split", "--splits=2 --group=2"),
        ("pytest-shard", "--num-shards=2 --shard-id=0"),
        ("pytest-shard", "--num-shards=2 --shard-id=1"),
        ("pytest-test-groups", "--test-group-count=2 --test-group=2"),
        ("pytest-balance pytest-xdist", ""),
        ("pytest-regex", "--regex=sums"),
        ("pytest-skip-slow pytest-reverse", "--reverse -n2"),
        ("pytest-random-order", "--random-order --random-order-bucket=global"),
        ("pytest-random-order", "--random-order -n2"),
        ("pytest-randomly pytest-cov", "--cov=. --cov-report= -n2"),
        ("pytest-randomly pytest-sugar", "-n2"),
        ("pytest-order pytest-timeout", "--timeout=20 -n2"),
        ("pytest-timeout pytest-rerunfailures", "--timeout=20 --timeout-method=thread --reruns=1"),
        ("pytest-html pytest-metadata pytest-json-report", "--html=a.html --json-report -n2"),
        ("allure-pytest pytest-reportlog", "--alluredir=a --report-log=b.log -n2"),
        ("pytest-asyncio anyio", "--asyncio-mode=auto -n2"),
        ("pytest-socket pytest-timeout", "--disable-socket --allow-unix-socket --timeout=20"),
        ("pytest-replay", "--replay-record-dir=replay -n2"),
        ("pytest-dependency pytest-order", ""),
        ("pytest-atomic pytest-instafail", "--instafail"),
        ("pytest-repeated", ""),
        ("pytest-probability", ""),
        ("pytest-soft-assert pytest-verifier", ""),
        ("pytest-runtime-xfail pytest-skip-markers", ""),
        ("pytest-uncollect-if", ""),
        ("pytest-impacted", ""),
        ("pytest-flakefighters", ""),
        ("pytest-monitor", "--no-monitor"),
        ("pytest-xdist-worker-stats pytest-cov", "-n2"),
    ]
    for model in ("weak",)
]
