#!/usr/bin/env python3
"""An object store over TLS for tests: a part of S3's protocol in memory, which checks every signature and fails on demand.

  object_server.py CERTIFICATE KEY

Prints its port. The keys are TESTKEY and TESTSECRET, the region is test-1, buckets are in the path and appear when they are
written to. PUT /_fault/NAME/N, without a signature, lets the next N requests fail in a way: storm (503), half (half of the body, then
the end of the connection), silent (no answer), redirect (307 to another host), lost (the request is carried out and answered 500),
xml (a listing that ends in the middle), endless (a listing whose every page has a next one), long (a body that is longer than asked
for), full (507 to what is written), readonly (403 to what is written or removed), slow (a second before what is written is answered),
late (what is written is carried out 3 s later, and not answered). GET /_seen is the number of requests, GET /_kinds how many of each
kind there were, GET /_uploads the number of uploads that were begun and not ended.
"""
import hashlib
import hmac
import http.server
import ssl
import sys
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

KEY, SECRET, REGION = "TESTKEY", "TESTSECRET", "test-1"
lock = threading.Lock()
objects, uploads, faults = {}, {}, {}  # key -> (bytes, etag, mark), id -> (key, mark, {number: bytes}), name -> left
counts = {"seen": 0, "next": 0}
kinds = {}  # what a provider charges for -> requests


def signature_of(handler, body):
    """What the signature of the request has to be, from the headers that it names."""
    fields = dict(part.strip().split("=", 1) for part in
                  handler.headers["Authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(","))
    path, _, query = handler.path.partition("?")
    pairs = sorted(tuple(part.partition("=")[::2]) for part in query.split("&") if part)
    names = fields["SignedHeaders"].split(";")
    canonical = "\n".join([
        handler.command, path, "&".join(f"{name}={value}" for name, value in pairs),
        "".join(f"{name}:{' '.join((handler.headers[name] or '').split())}\n" for name in names), ";".join(names),
        hashlib.sha256(body).hexdigest()])
    stamp = handler.headers["X-Amz-Date"]
    scope = f"{stamp[:8]}/{REGION}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{SECRET}".encode()
    for part in (stamp[:8], REGION, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    wanted = {"host", "x-amz-date", "x-amz-content-sha256"}
    known = fields["Credential"] == f"{KEY}/{scope}" and wanted <= set(names)
    return known and hmac.new(key, text.encode(), hashlib.sha256).hexdigest() == fields["Signature"]


def take(name):
    with lock:
        left = faults.get(name, 0)
        faults[name] = max(0, left - 1)
        return left > 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, code, body=b"", headers=(), length=None):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def fail(self, code, error):
        self.send(code, f"<Error><Code>{error}</Code><Message>a test</Message></Error>".encode())

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith("/_fault/"):
            _, _, name, number = self.path.split("/")
            faults[name] = int(number)
            return self.send(200)
        if self.path == "/_seen":
            return self.send(200, str(counts["seen"]).encode())
        if self.path == "/_kinds":
            return self.send(200, " ".join(f"{kind}={kinds[kind]}" for kind in sorted(kinds)).encode())
        if self.path == "/_uploads":
            return self.send(200, str(len(uploads)).encode())
        counts["seen"] += 1
        with lock:
            kind = "LIST" if "list-type" in self.path or self.command == "GET" and "uploads=" in self.path else self.command
            kinds[kind] = kinds.get(kind, 0) + 1
        if take("silent"):
            time.sleep(3)
            self.close_connection = True
            return None
        if take("storm"):
            return self.fail(503, "SlowDown")
        if take("redirect"):
            return self.send(307, headers=[("Location", f"https://localhost:{self.server.server_port}/elsewhere/x")])
        if not self.headers.get("Authorization"):
            return self.fail(403, "AccessDenied")
        if not signature_of(self, body):
            return self.fail(403, "SignatureDoesNotMatch")
        path, _, query = self.path.partition("?")
        fields = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        key = urllib.parse.unquote(path[1:])
        with lock:
            counts["next"] += 1
        if "list-type" in fields:
            return self.list(key.rstrip("/"), fields)
        if self.command == "GET" and "uploads" in fields:
            return self.list_uploads(key.rstrip("/"), fields)
        if self.command in ("GET", "HEAD"):
            return self.read(key)
        if take("readonly"):
            return self.fail(403, "AccessDenied")
        if self.command != "DELETE" and take("full"):
            return self.fail(507, "InsufficientStorage")
        if take("slow"):
            time.sleep(1)
        if take("late"):
            threading.Timer(3, self.write, (key, fields, body)).start()
            self.close_connection = True
            return None
        answer = self.write(key, fields, body)
        return self.fail(500, "InternalError") if take("lost") else self.send(*answer)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request

    def list(self, bucket, fields):
        if take("xml"):
            return self.send(200, b"<ListBucketResult><Contents><Key>half")
        if take("endless"):
            counts["next"] += 1
            return self.send(200, b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>%d"
                             b"</NextContinuationToken></ListBucketResult>" % counts["next"])
        prefix, after = fields.get("prefix", ""), fields.get("continuation-token", "")
        with lock:
            found = {key.removeprefix(bucket + "/"): (len(data), etag) for key, (data, etag, _) in objects.items()
                     if key.startswith(bucket + "/" + prefix)}
        if not found and not any(key.startswith(bucket + "/") for key in list(objects)) and bucket == "missing":
            return self.fail(404, "NoSuchBucket")
        below = len(prefix)
        keys = sorted({key[:key.index("/", below) + 1] if "delimiter" in fields and "/" in key[below:] else key for key in found})
        page = [key for key in keys if key > after][:3]  # small pages, so that there are several
        entries = "".join(
            f"<CommonPrefixes><Prefix>{escape(urllib.parse.quote(key, safe=''))}</Prefix></CommonPrefixes>" if key not in found else
            f"<Contents><Key>{escape(urllib.parse.quote(key, safe=''))}</Key><Size>{found[key][0]}</Size>"
            f"<ETag>{escape(found[key][1])}</ETag></Contents>" for key in page)
        more = keys and page and page[-1] != keys[-1]
        end = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        return self.send(200, f"<ListBucketResult><EncodingType>url</EncodingType>{entries}{end}</ListBucketResult>".encode())

    def list_uploads(self, bucket, fields):
        prefix, after = bucket + "/" + fields.get("prefix", ""), (fields.get("key-marker", ""), fields.get("upload-id-marker", ""))
        with lock:
            found = sorted((key.removeprefix(bucket + "/"), name) for name, (key, _, _) in uploads.items() if key.startswith(prefix))
        page = [each for each in found if each > after][:2]
        entries = "".join(f"<Upload><Key>{escape(urllib.parse.quote(key, safe=''))}</Key><UploadId>{name}</UploadId></Upload>"
                          for key, name in page)
        more = ""
        if page and page[-1] != found[-1]:
            more = (f"<IsTruncated>true</IsTruncated><NextKeyMarker>{escape(urllib.parse.quote(page[-1][0], safe=''))}</NextKeyMarker>"
                    f"<NextUploadIdMarker>{page[-1][1]}</NextUploadIdMarker>")
        return self.send(200, f"<ListMultipartUploadsResult><EncodingType>url</EncodingType>{entries}{more}"
                         "</ListMultipartUploadsResult>".encode())

    def read(self, key):
        if key not in objects:
            return self.fail(404, "NoSuchKey" if any(k.startswith(key.split("/")[0] + "/") for k in objects) else "NoSuchBucket")
        data, etag, mark = objects[key]
        headers = [("ETag", etag), ("x-amz-meta-medley-upload", mark)]
        if self.headers.get("If-Match") not in (None, etag):
            return self.fail(412, "PreconditionFailed")
        if self.command == "HEAD":
            return self.send(200, headers=headers, length=len(data))
        first, last = (int(number) for number in self.headers["Range"].removeprefix("bytes=").split("-"))
        if first >= len(data):
            return self.fail(416, "InvalidRange")
        last = min(last, len(data) - 1)
        part = data[first:last + 1]
        headers.append(("Content-Range", f"bytes {first}-{last}/{len(data)}"))
        if take("half"):
            self.send(206, part[:len(part) // 2], headers, len(part))
            self.close_connection = True
            return None
        if take("long"):
            part += b"more"
        return self.send(206, part, headers)

    def write(self, key, fields, body):
        with lock:
            return self.change(key, fields, body)

    def change(self, key, fields, body):
        if key.startswith("missing/"):
            return 404, b"<Error><Code>NoSuchBucket</Code></Error>"
        etag = f'"{hashlib.md5(body).hexdigest()}"'
        upload = uploads.get(fields.get("uploadId"))
        if "uploads" in fields:
            name = str(counts["next"])
            uploads[name] = (key, self.headers.get("x-amz-meta-medley-upload", ""), {})
            return 200, f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId></InitiateMultipartUploadResult>".encode()
        if "uploadId" in fields and upload is None:
            return 404, b"<Error><Code>NoSuchUpload</Code></Error>"
        if self.command == "PUT" and upload:
            upload[2][int(fields["partNumber"])] = body
            return 200, b"", [("ETag", etag)]
        if self.command == "POST":
            data = b"".join(upload[2][number] for number in sorted(upload[2]))
            objects[key] = (data, f'"{hashlib.md5(data).hexdigest()}-{len(upload[2])}"', upload[1])
            del uploads[fields["uploadId"]]
            return 200, b"<CompleteMultipartUploadResult/>"
        if self.command == "PUT":
            source = urllib.parse.unquote(self.headers.get("x-amz-copy-source", ""))[1:]
            data = objects[source][0] if source else body
            objects[key] = (data, f'"{hashlib.md5(data).hexdigest()}"', "")
            return (200, b"<CopyObjectResult/>") if source else (200,)
        uploads.pop(fields["uploadId"]) if upload else objects.pop(key, None)
        return (204,)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    # The handshake is that of the connection's own thread, so that a client that sends nothing blocks no other.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
