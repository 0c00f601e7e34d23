"""Kafka Connect's REST API over a `worker.herder.protocol.Herder`, its server, and what guards it.

Whoever has a worker file (`worker_config.worker.Worker`, whose `worker/rest` says how the API is served) starts it so:

1. the packages that serve it are of the extra `worker`;
2. `server.open_listeners(worker.rest)` before anything that takes long, so that an address in use is reported at once;
   its `settings.worker_id` is the id that statuses carry;
3. `app.make_app(herder, worker, listening.settings, metrics, validate)`, and `app.make_admin_app(herder,
   listening.settings)` for the addresses of `admin.listeners`;
4. `server.RestServer(app, admin_app, listening)`, then `start()`, and `stop()` in the end, which closes the addresses,
   too.
"""
