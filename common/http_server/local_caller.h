// For servers on a loopback address, to which a browser sends requests of every page that its user opens. Pure.
//
// Such a page may have a name that resolves to this machine (DNS rebinding); `Host` then has that name. Or it sends a
// form or a script's request to 127.0.0.1; `Origin` then has the page's name. A server refuses both.
#pragma once

#include "common/http_server/message.h"

namespace medley::http_server {

// Whether `Host` is a name of this machine: localhost, 127.0.0.0/8 or [::1], with any port, because a forwarded port
// has another number. A request without `Host` is refused too.
bool HasLocalHost(const HttpRequest& request);

// Whether the request has no `Origin`, as those of programs, or that of a page that this server serves under the name
// in `Host`.
bool HasOwnOrigin(const HttpRequest& request);

}  // namespace medley::http_server
