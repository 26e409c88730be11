"""Connections to one endpoint that many threads use, each request on one that nobody else looks at."""

from __future__ import annotations

import ssl
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

    from skillopt_lib_chat.deadlines import Deadlines

IDLE_SECONDS = 30.0


class Connections:
    """Sends requests, each through a client of its own while it is under way; a client has one connection.

    One client for all would look at each of its idle connections, with a call of the system for each, whenever a
    request begins and whenever one ends: with 24 threads that takes longer than the request itself.

    follow_redirects  whether a request is sent on to where its endpoint says
    """

    def __init__(self, deadlines: Deadlines, follow_redirects: bool = True) -> None:
        import httpx2

        self._deadlines, self._follow = deadlines, follow_redirects
        self._certificates: ssl.SSLContext = httpx2.create_ssl_context()  # takes longer than all else of a client
        self._idle: deque[httpx2.Client] = deque()
        self._all: list[httpx2.Client] = []

    def send(self, request: httpx2.Request) -> httpx2.Response:
        """The whole response; raises what `httpx2.Client.send` raises."""
        try:
            client = self._idle.pop()  # the one used last, whose connection is least likely to be closed by now
        except IndexError:
            client = self.open()
        try:
            # Past the client's own round, which looks for cookies, credentials and hooks that there are not.
            response = client._transport_for_url(request.url).handle_request(request)
            response.request = request
            response.read()
            return client.send(request) if self._follow and response.has_redirect_location else response
        finally:
            self._idle.append(client)

    def open(self) -> httpx2.Client:
        """A further client, closed with the others."""
        import httpx2
        import openai

        from skillopt_lib_chat.deadlines import use

        # How many requests are under way at once is the kernel's to say.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_SECONDS)
        client = openai.DefaultHttpxClient(limits=limits, verify=self._certificates, follow_redirects=self._follow)
        use(self._deadlines, client)
        self._all.append(client)
        return client

    def close(self) -> None:
        self._deadlines.shut_down()
        for client in self._all:
            client.close()
