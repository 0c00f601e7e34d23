"""The worker's page: what a browser shows of connectors, rendered by the server over the functions that REST has.

A screen is a method of a class that is handed to `frame.Pages`:

    class Screens:
        @shows("/ui/connectors/{connector}/files", live=("files",))     # GET
        def files(self, visit: Visit) -> View:
            return View("files.html", {"name": visit.connector, ...}, title="Files")

        @does("/ui/connectors/{connector}/pause")                       # POST
        def pause(self, visit: Visit) -> Done:
            visit.api.ask("PUT", f"/connectors/{quote(visit.connector, safe='')}/pause")
            return Done(f"/ui/connectors/{quote(visit.connector, safe='')}", "It pauses: nothing is sent until ...")

- `Visit.api.ask` runs an endpoint of REST in this process, with what it checks, and sends on to the leader what only
  that one does. What the role of who visits does not allow it refuses; `Visit.api.may` says whether to show a button.
  What a screen reads of the herder itself must be fit for a viewer.
  It raises RestError; what a screen raises of that, or of HerderError, becomes a page that says so.
- Templates (`templates/`) extend `base.html`: blocks `title`, `head` (what the page is of), `actions` (buttons beside
  it) and `body`. Text is escaped. A form has `{{ token() }}` within it, else its POST is refused. `View` may also be
  what an action answers with, such as a form with what is wrong; `Done` redirects and shows its words once.
- live: names of blocks that stand in an element whose id is the block's name; they are sent again when they change.
- No inline script or style: the policy refuses both. Charts are SVG (`charts.py`), numbers in words `words.py`.
- What only the owner of a connector knows (`facts.py`) is asked of it by a signed request, as the leader is.
"""
