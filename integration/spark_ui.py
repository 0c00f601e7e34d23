"""What Spark's own pages show."""

import requests


def pages(port: int) -> str:
    """Of the session, its queries and their plans."""
    base = f"http://127.0.0.1:{port}"
    [application] = requests.get(f"{base}/api/v1/applications", timeout=20).json()
    api = f"/api/v1/applications/{application['id']}"
    paths = ("/environment/", "/SQL/", "/StreamingQuery/", f"{api}/environment", f"{api}/sql?details=true")
    return "\n".join(requests.get(base + path, timeout=20).text for path in paths)
