"""The options that say how connectors are run, as `run` and `worker` have them."""

import argparse


def add_hosting(parser: argparse.ArgumentParser, default: str) -> None:
    """Spark's master and settings. default: the master of few connectors, for the help."""
    parser.add_argument(
        "--master",
        help=f"Spark master: local[N,ATTEMPTS] (default {default}, and more for more connectors), spark://…, k8s://…, "
        "yarn",
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a Spark setting, may be repeated, for example spark.driver.memory=1g",
    )


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form spark.KEY=VALUE")
    return key, value
