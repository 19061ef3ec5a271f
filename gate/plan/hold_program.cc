// The Lua program in which requests wait for the first replica of their service.
#include "gate/plan/config_text.h"

namespace gantry::gate {

// A request waits until a table has a backend for it. Each waiting request writes the time to its
// entry at intervals, so entries of clients that are gone expire.
const char* const kHoldProgram = R"lua(
local directory = os.getenv("GANTRY_GATE_DIR")
local whole = Map.new(directory .. "/whole.map", Map._str)
local parts = Map.new(directory .. "/parts.map", Map._str)
local queues = Map.new(directory .. "/queues.map", Map._str)
local waiting = {}
local last = 0

local function milliseconds()
  local now = core.now()
  return now.sec * 1000 + math.floor(now.usec / 1000)
end

local function count(of, now)
  local n = 0
  for id, seen in pairs(of) do
    if now - seen < 1000 then n = n + 1 else of[id] = nil end
  end
  return n
end

core.register_action("hold", {"http-req"}, function(txn)
  local service = txn:get_var("txn.service")
  local bucket = service .. ":" .. tostring(txn:get_var("txn.bucket") or 0)
  local longest = tonumber(txn:get_var("txn.hold")) or 0
  local began = milliseconds()
  local others = waiting[service]
  if not others then others = {}; waiting[service] = others end
  local most = tonumber(queues:lookup(service) or "")
  local here = count(others, began)
  if most and here >= most then
    txn:set_var("txn.full", 1)
    return
  end
  last = last + 1
  local id = last
  others[id] = began
  txn:Info("H " .. service)
  local pause = 10 + math.floor(here / 10)
  while true do
    local backend = whole:lookup(service) or parts:lookup(bucket)
    if backend and backend ~= "" then
      txn:set_var("txn.backend", backend)
      break
    end
    local now = milliseconds()
    if now - began >= longest then break end
    others[id] = now
    core.msleep(pause)
  end
  others[id] = nil
end, 0)

core.register_cli({"show", "held"}, "show held : requests that wait for a first replica",
  function(applet)
    local now = milliseconds()
    for service, of in pairs(waiting) do
      local n = count(of, now)
      if n > 0 then applet:send(service .. " " .. n .. "\n") end
    end
  end)
)lua";

}  // namespace gantry::gate
