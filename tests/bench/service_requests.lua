-- wrk script: POST /v1/plan with the body in the file REQUEST. With DISTINCT=1 each request requires another
-- throughput, so that no response comes from the cache.
local file = io.open(os.getenv("REQUEST"))
local body = file:read("*a")
file:close()
local head, floor, tail = body:match('^(.*"minThroughput": )([%d.]+)(.*)$')
local distinct = os.getenv("DISTINCT") == "1"
local start = tonumber(os.getenv("START") or "0")
local threads, count, thread_number = 0, 0, 0

wrk.method = "POST"
wrk.path = "/v1/plan"
wrk.headers["Content-Type"] = "application/json"
wrk.body = body

function setup(thread)
  thread:set("thread_number", threads)
  threads = threads + 1
end

function request()
  if not distinct then return wrk.format() end
  count = count + 1
  return wrk.format(nil, nil, nil, head .. string.format("%.9f", floor + thread_number + (start + count) * 1e-5) .. tail)
end
