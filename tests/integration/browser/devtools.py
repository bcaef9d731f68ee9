"""A headless Chromium driven through its DevTools protocol, with nothing but the standard library."""
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile

from waiting import PATIENCE, wait_for

CHROMIUM = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
            "--proxy-server=direct://", "--remote-debugging-port=0", "--window-size=1200,2200"]


class WebSocket:
    """A client that sends and receives text (RFC 6455)."""

    def __init__(self, port, path):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.rest = b""
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.socket.recv(4096)
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise AssertionError(head)

    def _read(self, size):
        while len(self.rest) < size:
            more = self.socket.recv(1 << 16)
            if not more:
                raise AssertionError("the browser has closed the connection")
            self.rest += more
        out, self.rest = self.rest[:size], self.rest[size:]
        return out

    def send(self, text):
        data = text.encode()
        mask = os.urandom(4)
        size = len(data)
        head = b"\x81" + (struct.pack("!B", 0x80 | size) if size < 126 else
                          struct.pack("!BH", 0x80 | 126, size) if size < 65536 else struct.pack("!BQ", 0x80 | 127, size))
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def receive(self):
        out = b""
        while True:
            first, second = self._read(2)
            size = second & 0x7F
            if size == 126:
                size = struct.unpack("!H", self._read(2))[0]
            elif size == 127:
                size = struct.unpack("!Q", self._read(8))[0]
            data = self._read(size)
            if first & 0x0F in (0, 1):
                out += data
                if first & 0x80:
                    return out.decode()

    def close(self):
        self.socket.close()


class Browser:
    """One page. `problems` has its console errors, uncaught exceptions and failed loads."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="medley-chromium-")
        environment = {**os.environ, "HOME": self.folder}
        self.process = subprocess.Popen([*CHROMIUM, f"--user-data-dir={self.folder}", "about:blank"], env=environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        port_file = os.path.join(self.folder, "DevToolsActivePort")

        def port():
            if self.process.poll() is not None:
                raise AssertionError(f"chromium ended with {self.process.returncode}")
            if not os.path.exists(port_file):
                return None
            with open(port_file, encoding="ascii") as file:
                lines = file.read().split()
            return int(lines[0]) if len(lines) == 2 else None
        self.port = wait_for("chromium", port)
        self.socket = WebSocket(self.port, wait_for("a page", self._page))
        self.problems = []
        self.next_id = 0
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")

    def _page(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", "/json/list")
        pages = [p for p in json.loads(connection.getresponse().read()) if p["type"] == "page"]
        connection.close()
        return pages and pages[0]["webSocketDebuggerUrl"].split(str(self.port), 1)[1]

    def _note(self, message):
        method, values = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(values["exceptionDetails"]))
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.problems.append(values["entry"]["text"] + " " + values["entry"].get("url", ""))
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "assert"):
            self.problems.append(json.dumps(values["args"]))

    def command(self, method, **values):
        self.next_id += 1
        self.socket.send(json.dumps({"id": self.next_id, "method": method, "params": values}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.next_id:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def evaluate(self, expression):
        result = self.command("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"])
        return result["result"].get("value")

    def wait(self, expression):
        return wait_for(expression, lambda: self.evaluate(expression))

    def screenshot(self, path, height=None, element=None):
        """The whole page; or its upper `height` pixels, or the element of this id, at three quarters of their size."""
        clip = {} if height is None else {"clip": {"x": 0, "y": 0, "width": 1200, "height": height, "scale": 0.75}}
        if element is not None:
            box = self.evaluate(f"document.getElementById('{element}').getBoundingClientRect().toJSON()")
            top = box["y"] + self.evaluate("window.scrollY")
            clip = {"clip": {"x": 0, "y": top, "width": 1200, "height": box["height"], "scale": 0.75}}
        data = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, **clip)["data"]
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        try:
            self.command("Browser.close")
        except (AssertionError, OSError):
            pass  # it exited before it responded
        self.socket.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
