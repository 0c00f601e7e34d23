"""A part of the script: `/connector-plugins`."""

from integration.connect.steps import TOPIC, Script, Side


def plugins(made: Script, side: Side) -> None:
    """What is installed, and its keys."""
    made.ask("plugins", "GET /connector-plugins")
    made.ask("plugins, slash at the end", "GET /connector-plugins/")
    made.ask("plugins of all kinds", "GET /connector-plugins?connectorsOnly=false")
    made.ask("plugins, with a word for a flag", "GET /connector-plugins?connectorsOnly=maybe")
    made.ask("keys of the plugin", f"GET /connector-plugins/{side.plugin}/config")
    made.ask("keys of the plugin by full name", f"GET /connector-plugins/{side.connector_class}/config")
    made.ask("keys of a converter", "GET /connector-plugins/org.apache.kafka.connect.json.JsonConverter/config")
    made.ask(
        "keys of a transform", "GET /connector-plugins/org.apache.kafka.connect.transforms.HoistField$Value/config"
    )
    made.ask("keys of a predicate", "GET /connector-plugins/HasHeaderKey/config")
    made.ask("keys of no plugin", "GET /connector-plugins/NoSuchThing/config")
    made.ask("a plugin without a question", f"GET /connector-plugins/{side.plugin}")


def validation(made: Script, side: Side) -> None:
    """Configurations, each wrong in one way."""
    path = f"PUT /connector-plugins/{side.plugin}/config/validate"
    made.ask("validate", path, side.config(name="main"))
    made.ask("validate, by full name", path.replace(side.plugin, side.connector_class), side.config(name="main"))
    made.ask("validate without topics", path, side.config(None, name="main"))
    made.ask("validate with topics and a pattern", path, side.config(name="main", topics_regex="a.*"))
    made.ask("validate a number that is none", path, side.config(name="main", tasks_max="many"))
    made.ask("validate a number below the least", path, side.config(name="main", tasks_max="0"))
    made.ask("validate numbers and flags of JSON", path, side.config(name="main", tasks_max=2, errors_log_enable=True))
    made.ask("validate a choice that is none", path, side.config(name="main", errors_tolerance="some"))
    made.ask("validate without a name", path, side.config())
    made.ask("validate an empty name", path, side.config(name=""))
    made.ask("validate an unknown key", path, side.config(name="main", no_such_key="x"))
    made.ask("validate a converter that is none", path, side.config(name="main", value_converter="no.such.Converter"))
    hoist = {"transforms": "hoist", "transforms_hoist_type": "org.apache.kafka.connect.transforms.HoistField$Value"}
    made.ask("validate a transform", path, side.config(name="main", **hoist, transforms_hoist_field="x"))
    made.ask("validate a transform without its key", path, side.config(name="main", **hoist))
    made.ask("validate a transform without a type", path, side.config(name="main", transforms="a"))
    made.ask("validate a transform that is none", path, side.config(name="main", transforms="a", transforms_a_type="X"))
    made.ask("validate without a class", path, {"name": "main", "topics": TOPIC})
    made.ask("validate another class", path, {**side.config(name="main"), "connector.class": "Other"})
    made.ask("validate a class that is none", "PUT /connector-plugins/NoSuchThing/config/validate", side.config())
    none = {**side.config(), "connector.class": "NoSuchThing"}
    made.ask("validate a class that is none, twice named", "PUT /connector-plugins/NoSuchThing/config/validate", none)
    made.ask("validate nothing", path)
    made.ask("validate a list", path, [])
    made.ask("validate torn JSON", path, b'{"name": ')
