// Calls to the service. An error response becomes an Error with the service's message and the path of the field.

export function setToken(token) {
  if (token) sessionStorage.setItem("token", token);
  else sessionStorage.removeItem("token");
}

// The link that `medley run` prints has the token behind its #, which browsers do not send to servers. It is kept for
// this tab, and leaves the address bar and the history.
export function takeToken() {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (found === null) return false;
  setToken(found);
  history.replaceState(null, "", location.pathname + location.search);
  return true;
}

export function token() {
  return sessionStorage.getItem("token") || "";
}

export async function call(path, options = {}) {
  const headers = { ...(options.headers || {}) };
  if (token()) headers.Authorization = `Bearer ${token()}`;
  const response = await fetch(path, { ...options, headers });
  const text = await response.text();
  let body = null;
  try {
    body = JSON.parse(text);
  } catch {
    // The body is not from the service (but from a proxy, for example), so report the HTTP code.
  }
  if (response.ok && body !== null) return body;
  const error = new Error(body?.message || `${path}: HTTP ${response.status}`);
  error.field = body?.field || "";
  error.status = response.status;
  throw error;
}

export function post(path, value, signal) {
  return call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value), signal });
}

// Converts a request that a user typed, JSON or YAML, to an object.
export function normalize(text) {
  const json = text.trimStart().startsWith("{");
  const type = json ? "application/json" : "application/yaml";
  return call("v1/normalize", { method: "POST", headers: { "Content-Type": type }, body: text });
}
