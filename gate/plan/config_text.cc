#include "gate/plan/config_text.h"

#include <fmt/core.h>
#include <sodium.h>

#include <algorithm>

#include "common/codec/json_io.h"

namespace gantry::gate {

namespace {

constexpr const char* kTableNames[] = {
    table::kRoutes, table::kAccess, table::kCallers, table::kDoors, table::kWhole,
    table::kParts,  table::kHolds,  table::kQueues,  table::kCalls, table::kTenants};
static_assert(std::size(kTableNames) == 10);

constexpr const char* kBackend = "backend ";

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '$') out += '\\';
    if (static_cast<unsigned char>(c) >= ' ') out += c;
  }
  return out + "\"";
}

std::string milliseconds_text(Duration d) {
  return fmt::format("{}ms", std::max<std::int64_t>(d.us / 1000, 1));
}

std::string global_block(const Settings& s) {
  std::string out = fmt::format(
      "  log ring@requests format raw local0 info\n"
      "  stats socket {0}/admin.sock mode 600 level admin expose-fd listeners\n"
      "  stats timeout 1d\n"
      "  stats maxconn 20\n"
      "  maxconn {1}\n"
      "  nbthread {2}\n"
      "  hard-stop-after 1h\n"
      "  tune.bufsize 16384\n"
      "  ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets\n"
      "  setenv GANTRY_GATE_DIR {0}\n"
      "  lua-load {0}/hold.lua\n",
      s.state_dir, s.connections, std::max(s.threads, 1u));
  if (!s.user.empty()) out += fmt::format("  user {}\n", s.user);
  return out;
}

// A request's line, in which each of its words is a number or a name without blanks.
constexpr const char* kLogFormat = "L %b %s %ST %Tw %Tc %Tr %Ta %ts %U %B %[var(txn.service)] %HM";

std::string defaults_block() {
  return fmt::format(
      "  mode http\n"
      "  log global\n"
      "  log-format \"{}\"\n"
      "  unique-id-format %[var(txn.door)]\n"
      "  option idle-close-on-response\n"
      "  option http-buffer-request\n"
      "  option abortonclose\n"
      "  option redispatch 1\n"
      "  http-reuse always\n"
      "  timeout client 60s\n"
      "  timeout client-fin 10s\n"
      "  timeout http-request 10s\n"
      "  timeout http-keep-alive 30s\n"
      "  timeout connect 1s\n"
      "  timeout server 1h\n"
      "  timeout tunnel 1h\n"
      "  timeout queue 1m\n",
      kLogFormat);
}

std::string ring_block(const Settings& s) {
  return fmt::format(
      "  format raw\n"
      "  maxlen 1024\n"
      "  size 4194304\n"
      "  timeout connect 1s\n"
      "  timeout server 10s\n"
      "  server gate unix@{}/log.sock\n",
      s.state_dir);
}

// Headers that no request may have, and headers with which a client could impersonate the gate.
constexpr const char* kCleaning =
    "\n"
    "  http-request return status 405 content-type text/plain string \"There is "
    "no such method here.\\n\" if { method CONNECT TRACE }\n"
    "  http-request return status 400 content-type text/plain string \"The path "
    "of this request is not plain.\\n\" if { path,url_dec -m reg "
    "(^|/)\\.\\.?(/|$) } || { path,url_dec -m reg [[:cntrl:]\\\\\\\\] } || { "
    "path -m sub -i %00 }\n"
    "  http-request return status 400 content-type text/plain string \"A request "
    "has one Authorization header at most.\\n\" if { req.fhdr_cnt(authorization) "
    "gt 1 }\n"
    "  http-request del-header ^x[-_.]gantry -m reg\n"
    "  http-request del-header ^x[-_.]forwarded -m reg\n"
    "  http-request del-header "
    "^(forwarded|x-real-ip|proxy|via|x[-_.]http[-_.]method[-_.]override)$ -m reg\n";

std::string route_rules(const Settings& s) {
  return fmt::format(
      "  http-request set-var(txn.host) req.hdr(host),host_only,lower,regsub(\\.$,)\n"
      "  http-request set-var(txn.path) path\n"
      "  http-request set-var(txn.service) var(txn.host),concat(,txn.path,/),map_beg({})\n"
      "  http-request return status 404 content-type text/plain string \"There is no such service "
      "here.\\n\" if !{{ var(txn.service) -m found }}\n"
      "  http-request set-var(txn.owner) var(txn.service),field(1,:)\n"
      "  http-request set-var(txn.name) var(txn.service),field(2,:)\n"
      "  http-request set-var(txn.access) var(txn.service),map_str({},tenant)\n",
      table_file(s, table::kRoutes), table_file(s, table::kAccess));
}

std::string refusal(int status, const char* text, const char* header, const std::string& when) {
  return fmt::format(
      "  http-request return status {} content-type text/plain string \"{}\\n\" {} if {}\n", status,
      text, header, when);
}

// A verified signature is remembered by the digest of the whole token, because checking one takes a
// tenth of a millisecond. The token's claims are checked each time.
std::string token_rules(const Settings& s, const std::string& issuer,
                        const std::vector<TokenKey>& keys) {
  const std::string bearer = "hdr WWW-Authenticate Bearer";
  std::string out =
      "  acl wants_token var(txn.access) -m str tenant tokens\n"
      "  http-request set-var(txn.bearer) http_auth_bearer if wants_token\n" +
      refusal(401, "This service wants a token: Authorization: Bearer TOKEN.", bearer.c_str(),
              "wants_token !{ var(txn.bearer) -m found }") +
      "  http-request set-var(txn.alg) var(txn.bearer),jwt_header_query('$.alg') if wants_token\n"
      "  http-request set-var(txn.kid) var(txn.bearer),jwt_header_query('$.kid') if wants_token\n"
      "  http-request set-var(txn.digest) var(txn.bearer),sha2(256) if wants_token\n"
      "  http-request set-var(txn.signed) int(1) if wants_token { "
      "var(txn.digest),table_gpt0(good_tokens) gt 0 }\n";
  for (const TokenKey& key : keys)
    out += fmt::format(
        "  http-request set-var(txn.signed) var(txn.bearer),jwt_verify(ES256,{}) if wants_token "
        "!{{ "
        "var(txn.signed) -m found }} {{ var(txn.alg) -m str ES256 }} {{ var(txn.kid) -m str {} "
        "}}\n",
        quoted(key.file), quoted(key.id));
  out += refusal(401, "The token is not signed by this cluster.", bearer.c_str(),
                 "wants_token !{ var(txn.signed) -m int 1 }");
  out +=
      "  http-request track-sc2 var(txn.digest) table good_tokens if wants_token\n"
      "  http-request sc-set-gpt0(2) 1 if wants_token\n"
      "  http-request set-var(txn.now) date if wants_token\n"
      "  http-request set-var(txn.left) var(txn.bearer),jwt_payload_query('$.exp','int'),"
      "sub(txn.now) if wants_token\n"
      "  http-request set-var(txn.early) var(txn.bearer),jwt_payload_query('$.nbf','int'),"
      "sub(txn.now) if wants_token\n"
      "  http-request set-var(txn.iss) var(txn.bearer),jwt_payload_query('$.iss') if wants_token\n"
      "  http-request set-var(txn.aud) var(txn.bearer),jwt_payload_query('$.aud') if wants_token\n"
      "  http-request set-var(txn.caller) var(txn.bearer),jwt_payload_query('$.tenant') if "
      "wants_token\n"
      "  http-request set-var(txn.user) var(txn.bearer),jwt_payload_query('$.user') if "
      "wants_token\n";
  out += refusal(401, "The token has expired.", bearer.c_str(),
                 "wants_token !{ var(txn.left) -m int gt 0 }");
  out += refusal(401, "The token is not valid yet.", bearer.c_str(),
                 "wants_token { var(txn.early) -m int gt 30 }");
  out += refusal(401, "The token is of another issuer.", bearer.c_str(),
                 fmt::format("wants_token !{{ var(txn.iss) -m str {} }}",
                             quoted(issuer.empty() ? "nobody-issues-tokens-here" : issuer)));
  out += refusal(401, "The token is for another audience: gantry-services, or the service.",
                 bearer.c_str(),
                 "wants_token !{ var(txn.aud) -m str gantry-services } !{ "
                 "var(txn.aud),strcmp(txn.name) eq 0 }");
  out += "  http-request set-var(txn.pair) var(txn.service),concat(:,txn.caller)\n";
  out +=
      refusal(403, "The token's tenant may not use this service.", "hdr Cache-Control no-store",
              fmt::format("{{ var(txn.access) -m str tenant }} !{{ "
                          "var(txn.caller),strcmp(txn.owner) eq 0 }} !{{ var(txn.pair),map_str({}) "
                          "-m found }}",
                          table_file(s, table::kCallers)));
  // A service could use the token elsewhere in the caller's name.
  out += "  http-request del-header authorization if wants_token\n";
  return out;
}

std::string limit_rules(const Settings& s) {
  const std::string retry = "hdr Retry-After 1";
  return fmt::format(
             "  http-request set-var(txn.who) src\n"
             "  http-request set-var(txn.who) var(txn.caller) if {{ var(txn.caller) -m found }}\n"
             "  http-request set-var(txn.caller_key) var(txn.service),concat(:,txn.who)\n"
             "  http-request set-var(txn.calls) var(txn.service),map_str_int({})\n"
             "  http-request set-var(txn.all_calls) var(txn.owner),map_str_int({})\n"
             "  acl limits_callers var(txn.calls) -m found\n"
             "  acl limits_tenant var(txn.all_calls) -m found\n"
             "  http-request track-sc0 var(txn.caller_key) table callers if limits_callers\n"
             "  http-request track-sc1 var(txn.owner) table owners if limits_tenant\n"
             "  http-request set-var(txn.over) sc_gpc0_rate(0),sub(txn.calls) if limits_callers\n"
             "  http-request set-var(txn.all_over) sc_gpc0_rate(1),sub(txn.all_calls) if "
             "limits_tenant\n",
             table_file(s, table::kCalls), table_file(s, table::kTenants)) +
         refusal(429, "This caller sends more requests than the service allows.", retry.c_str(),
                 "limits_callers { var(txn.over) -m int ge 0 }") +
         refusal(429, "This tenant's services get more requests than it may have.", retry.c_str(),
                 "limits_tenant { var(txn.all_over) -m int ge 0 }") +
         "  http-request sc-inc-gpc0(0) if limits_callers\n"
         "  http-request sc-inc-gpc0(1) if limits_tenant\n";
}

// Requests of one key go to one version. A header's name is part of a rule, so services with the
// same header share one.
std::string bucket_rules(const Layout& layout) {
  std::map<std::string, std::vector<std::string>> by_header;
  for (const auto& [name, backend] : layout.backends)
    if (backend.service->route.balance == tenancy::BalancePolicy::key) {
      auto& of = by_header[backend.service->route.key_header];
      if (of.empty() || of.back() != service_id(*backend.service))
        of.push_back(service_id(*backend.service));
    }
  std::string out = "  http-request set-var(txn.bucket) rand(100)\n";
  for (const auto& [header, services] : by_header) {
    std::string all;
    for (const std::string& one : services) all += " " + one;
    out += fmt::format(
        "  http-request set-var(txn.bucket) req.hdr({0}),xxh32,mod(100) if {{ req.hdr({0}) -m "
        "found }} {{ var(txn.service) -m str{1} }}\n",
        header, all);
  }
  return out;
}

std::string choice_rules(const Settings& s, const Layout& layout) {
  return bucket_rules(layout) +
         fmt::format(
             "  http-request set-var(txn.backend) var(txn.service),map_str({0})\n"
             "  http-request set-var(txn.part) var(txn.service),concat(:,txn.bucket)\n"
             "  http-request set-var(txn.backend) var(txn.part),map_str({1}) if !{{ "
             "var(txn.backend) -m found }}\n"
             "  http-request set-var(txn.hold) var(txn.service),map_str({2},0)\n"
             "  http-request lua.hold if !{{ var(txn.backend) -m found }}\n",
             table_file(s, table::kWhole), table_file(s, table::kParts),
             table_file(s, table::kHolds)) +
         refusal(429, "Too many requests wait for this service.", "hdr Retry-After 1",
                 "{ var(txn.full) -m found }") +
         refusal(503, "No replica of this service is ready.", "hdr Retry-After 2",
                 "!{ var(txn.backend) -m found }");
}

// The header of the PROXY protocol is part of what makes two connections equal, so all requests
// get the same addresses: replicas' connections are used again for other clients.
std::string last_rules(const Settings& s) {
  return fmt::format(
      "  http-request set-header X-Forwarded-For %[src]\n"
      "  http-request set-header X-Forwarded-Host %[req.hdr(host)]\n"
      "  http-request set-header X-Forwarded-Proto https if {{ ssl_fc }}\n"
      "  http-request set-header X-Forwarded-Proto http if !{{ ssl_fc }}\n"
      "  http-request set-header X-Gantry-Tenant %[var(txn.caller)] if {{ var(txn.caller) -m found "
      "}}\n"
      "  http-request set-header X-Gantry-User %[var(txn.user)] if {{ var(txn.user) -m found }}\n"
      "  http-request set-var(txn.door) var(txn.service),map_str({})\n"
      "  http-request set-src str(127.0.0.1)\n"
      "  http-request set-src-port int(0)\n"
      "  http-request set-dst str(127.0.0.1)\n"
      "  http-request set-dst-port int(0)\n"
      "  use_backend %[var(txn.backend)]\n",
      table_file(s, table::kDoors));
}

std::string frontend_block(const Settings& s, const Layout& layout, const std::string& issuer,
                           const std::vector<TokenKey>& keys) {
  std::string out;
  for (const std::string& at : s.listen) out += fmt::format("  bind {}\n", at);
  for (const std::string& at : s.listen_tls)
    out += fmt::format("  bind {} ssl crt {} alpn h2,http/1.1\n", at, s.certificate);
  out += std::string(kCleaning).substr(1);
  out += route_rules(s);
  out += token_rules(s, issuer, keys);
  out += limit_rules(s);
  out += choice_rules(s, layout);
  out += last_rules(s);
  return out;
}

const char* balance_of(tenancy::BalancePolicy policy) {
  using enum tenancy::BalancePolicy;
  return policy == least_loaded ? "leastconn" : "roundrobin";  // latency: by weights
}

std::string backend_block(const Backend& backend) {
  const proto::GateService& service = *backend.service;
  const tenancy::ServiceRoute& route = service.route;
  std::string out;
  if (route.balance == tenancy::BalancePolicy::key)
    out += fmt::format(
        "  balance hdr({})\n  hash-type consistent sdbm avalanche\n  hash-balance-factor 125\n",
        route.key_header);
  else
    out += fmt::format("  balance {}\n", balance_of(route.balance));
  const Duration wait = wait_of(service);
  if (wait > Duration{}) out += fmt::format("  timeout queue {}\n", milliseconds_text(wait));
  out += "  retries 2\n";
  out += route.repeat ? "  retry-on conn-failure empty-response response-timeout junk-response\n"
                      : "  retry-on conn-failure\n";
  if (route.queue > 0)
    out += refusal(429, "Too many requests wait for this service.", "hdr Retry-After 1",
                   fmt::format("{{ queue ge {} }}", route.queue));
  // A request that waited too long for a replica gets an answer to retry; one that was lost with a
  // replica gets an error of the replica.
  out +=
      "  http-response set-var(txn.answered) int(1)\n"
      "  acl answered var(txn.answered) -m found\n"
      "  acl has_server srv_id -m found\n"
      "  acl is_full queue gt 0\n"
      "  http-after-response set-header Retry-After 1 if !answered { status 503 } !has_server { "
      "nbsrv gt 0 } || !answered { status 503 } is_full\n"
      "  http-after-response set-status 429 if !answered { status 503 } !has_server { nbsrv gt 0 } "
      "|| !answered { status 503 } is_full\n"
      "  http-after-response set-status 502 if !answered { status 503 } has_server !is_full\n"
      "  http-after-response set-header Retry-After 2 if !answered { status 503 }\n";
  return out;
}

constexpr std::size_t kCoordinate = 32;  // octets, of P-256
// The head of a SubjectPublicKeyInfo for a point of P-256 that is not compressed (RFC 5480).
constexpr std::string_view kHead(
    "\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"
    "\x03\x42\x00\x04",
    27);
constexpr std::size_t kLine = 64;

std::string octets_of(std::string_view base64url) {
  std::string out(base64url.size(), '\0');
  std::size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(out.data()), out.size(), base64url.data(),
                        base64url.size(), nullptr, &size, nullptr,
                        sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0)
    return {};
  out.resize(size);
  return out;
}

std::string pem_of(const std::string& x, const std::string& y) {
  const std::string der = std::string(kHead) + x + y;
  std::string text(sodium_base64_encoded_len(der.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(der.data()),
                    der.size(), sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // the zero at the end
  std::string out = "-----BEGIN PUBLIC KEY-----\n";
  for (std::size_t at = 0; at < text.size(); at += kLine) out += text.substr(at, kLine) + "\n";
  return out + "-----END PUBLIC KEY-----\n";
}

}  // namespace

std::string table_file(const Settings& settings, const std::string& name) {
  return settings.state_dir + "/" + name + ".map";
}

std::string table_text(const std::map<std::string, std::string>& rows) {
  std::string out;
  for (const auto& [key, value] : rows) out += key + " " + value + "\n";
  return out;
}

Blocks blocks_of(const Settings& settings, const Layout& layout, const std::string& issuer,
                 const std::vector<TokenKey>& keys) {
  Blocks out;
  out["global"] = global_block(settings);
  out["defaults"] = defaults_block();
  out["ring requests"] = ring_block(settings);
  out["frontend requests"] = frontend_block(settings, layout, issuer, keys);
  out["backend good_tokens"] = "  stick-table type binary len 32 size 100k expire 10m store gpt0\n";
  out["backend callers"] =
      "  stick-table type string len 200 size 100k expire 10s store gpc0_rate(1s)\n";
  out["backend owners"] =
      "  stick-table type string len 100 size 10k expire 10s store gpc0_rate(1s)\n";
  if (!settings.raw_metrics.empty())
    out["frontend metrics"] = fmt::format(
        "  bind {}\n  no log\n  http-request use-service prometheus-exporter if {{ path /metrics "
        "}}\n  http-request return status 404 content-type text/plain string \"There is "
        "/metrics.\\n\"\n",
        settings.raw_metrics);
  for (const auto& [name, backend] : layout.backends) out[kBackend + name] = backend_block(backend);
  return out;
}

std::string server_options(const Server& server, bool by_hash) {
  std::string out = fmt::format(
      "{} weight {} send-proxy-v2 proxy-v2-options unique-id pool-purge-delay 5s "
      "pool-max-conn 1000",
      server.address, server.weight);
  if (by_hash) out += fmt::format(" id {}", server.id);
  if (server.most > 0) out += fmt::format(" maxconn {}", server.most);
  return out;
}

std::string config_text(const Blocks& blocks, const Layout& layout) {
  std::string out = "# Made by gantry-gate, which writes it anew; changes here are lost.\n";
  for (const char* first : {"global", "defaults"})
    if (const auto it = blocks.find(first); it != blocks.end())
      out += it->first + "\n" + it->second;
  for (const auto& [head, body] : blocks) {
    if (head == "global" || head == "defaults") continue;
    out += head + "\n" + body;
    if (!head.starts_with(kBackend)) continue;
    const auto it = layout.backends.find(head.substr(std::string_view(kBackend).size()));
    if (it == layout.backends.end()) continue;
    const bool by_hash = it->second.service->route.balance == tenancy::BalancePolicy::key;
    for (const auto& [name, server] : it->second.servers)
      if (server.state != ServerState::drain)
        out += fmt::format("  server {} {}{}\n", name, server_options(server, by_hash),
                           server.state == ServerState::ready ? "" : " disabled");
  }
  return out;
}

Blocks read_blocks(const std::string& text) {
  Blocks out;
  std::string* body = nullptr;
  bool is_backend = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line.starts_with('#')) continue;
    if (!line.starts_with(' ')) {
      body = &out[line];
      is_backend = line.starts_with(kBackend);
    } else if (body != nullptr && !(is_backend && line.starts_with("  server "))) {
      *body += line + "\n";
    }
  }
  return out;
}

bool can_serve(const Blocks& running, const Blocks& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& block) {
    const auto it = running.find(block.first);
    return it != running.end() && it->second == block.second;
  });
}

Result<std::map<std::string, std::string>> pem_of_keys(const std::string& jwks) {
  std::map<std::string, std::string> out;
  if (jwks.empty()) return out;
  ASSIGN(document, codec::JsonDocument::parse(jwks));
  const auto keys = document->root().is_object() ? document->root().find("keys") : std::nullopt;
  if (!keys || !keys->is_array()) return fail(ErrorCode::malformed, "it is no set of keys");
  for (std::size_t i = 0; i < keys->size(); ++i) {
    const codec::JsonNode key = keys->item(i);
    if (!key.is_object()) continue;
    const auto text = [&](std::string_view name) {
      const auto node = key.find(name);
      return std::string(node && node->string() ? *node->string() : std::string_view());
    };
    const std::string x = octets_of(text("x")), y = octets_of(text("y"));
    if (text("kty") != "EC" || text("crv") != "P-256" || x.size() != kCoordinate ||
        y.size() != kCoordinate || text("kid").empty())
      continue;
    out[text("kid")] = pem_of(x, y);
  }
  return out;
}

}  // namespace gantry::gate
