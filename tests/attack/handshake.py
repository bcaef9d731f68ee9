"""Who can speak HTTP/2 with a member of a job: the first frames that it answers, with and without a certificate of the job."""
import os
import socket
import ssl
import subprocess

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)  # and an empty SETTINGS frame
SETTINGS = 4


def make_certificate(folder, name, authority=None):
    """The file with a new key and certificate for `name`, signed by the CA with the files `authority`, else by itself."""
    key, request, certificate = (os.path.join(folder, f"{len(os.listdir(folder))}.{kind}") for kind in ("key", "csr", "crt"))
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-subj", "/CN=medley"]
    names = os.path.join(folder, "names.cnf")
    with open(names, "w", encoding="ascii") as file:
        file.write(f"subjectAltName=DNS:{name}\nextendedKeyUsage=serverAuth,clientAuth\n")
    if authority is None:
        openssl("req", "-x509", *new_key, "-addext", f"subjectAltName=DNS:{name}", "-days", "1", "-out", certificate)
    else:
        ca, ca_key = authority
        openssl("req", "-new", *new_key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-set_serial", "7", "-days", "1", "-extfile", names,
                "-out", certificate)
    with open(certificate, "a", encoding="ascii") as file, open(key, encoding="ascii") as more:
        file.write(more.read())
    return certificate


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


def answers(address, certificate=None, tls=True, patience=20):
    """What `address` (host, port) says to the first frames of HTTP/2: "settings", else how it refused. Without an answer or an end
    within `patience` seconds: "silence".
    """
    try:
        with socket.create_connection(address, timeout=patience) as plain:
            connection = plain
            if tls:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
                context.set_alpn_protocols(["h2"])
                if certificate:
                    context.load_cert_chain(certificate)
                connection = context.wrap_socket(plain)
            connection.sendall(PREFACE)
            answer = b""
            while len(answer) < 9:
                piece = connection.recv(9 - len(answer))
                if not piece:
                    return "closed"
                answer += piece
            return "settings" if answer[3] == SETTINGS else f"frame {answer[3]}"
    except socket.timeout:
        return "silence"
    except (ssl.SSLError, OSError) as error:
        return getattr(error, "reason", None) or type(error).__name__
