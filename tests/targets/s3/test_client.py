"""What botocore signed, as it goes out."""

import io

import pytest
from botocore.awsrequest import AWSPreparedRequest, HeadersDict
from requests import PreparedRequest, Request

from parquet_sink.net.exchange import Answer, Limits
from parquet_sink.targets.s3.client import Transport

URL = "https://b.s3.eu-west-1.amazonaws.com/a%20b/%2A%3D%C3%BC?partNumber=1&uploadId=x%2By"


class Wire:
    """Keeps requests as they would go out."""

    def __init__(self) -> None:
        self.sent: list[PreparedRequest] = []

    def exchange(self, request: Request, limits: Limits) -> Answer:
        self.sent.append(request.prepare())
        return Answer(200)


def sent(body: object, **headers: str) -> PreparedRequest:
    """What goes out for a signed request."""
    wire = Wire()
    transport = Transport(wire, 1.0, 1.0)  # type: ignore[arg-type]
    with transport.within(9.0):
        transport.send(AWSPreparedRequest("PUT", URL, HeadersDict(headers), body, False))
    return wire.sent[0]


@pytest.mark.parametrize("content", [b"", b"abc"])
def test_a_stream_is_sent_with_its_length(content: bytes) -> None:
    """S3 takes no chunks, which requests makes of a stream that is empty."""
    request = sent(io.BytesIO(content), **{"Content-Length": str(len(content)), "Expect": "100-continue"})
    assert request.headers == {"Content-Length": str(len(content))}
    assert b"".join(request.body or ()) == content  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [b"<x/>", "<x/>"])
def test_a_text_is_sent_as_it_is(content: bytes | str) -> None:
    """Such as the list of an upload's parts."""
    request = sent(content, **{"Content-Type": "application/xml"})
    assert request.headers == {"Content-Type": "application/xml", "Content-Length": "4"}
    assert request.body == content


def test_the_address_is_the_one_that_was_signed() -> None:
    """Written otherwise it would not fit its signature."""
    assert sent(None).url == URL
