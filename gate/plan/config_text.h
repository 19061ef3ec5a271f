// The configuration of HAProxy, as text. It has two parts: what only a reload changes (the blocks),
// and the servers in the backends, which are changed at run time (layout.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/result.h"
#include "gate/plan/layout.h"

namespace gantry::gate {

struct Settings {
  std::vector<std::string> listen;      // HOST:PORT, plain
  std::vector<std::string> listen_tls;  // HOST:PORT, with the certificate
  std::string certificate;              // PEM file with certificates and key, or a directory
  std::string state_dir;
  std::string user;  // user as which HAProxy runs; "" = unchanged
  unsigned threads = 1;
  unsigned connections = 10'000;
  std::string raw_metrics;  // HOST:PORT of HAProxy's own exporter; "" = none
};

// Blocks by their first line, "backend fraud:api:v1"; without servers.
using Blocks = std::map<std::string, std::string>;

struct TokenKey {
  std::string id;    // kid
  std::string file;  // PEM
};

Blocks blocks_of(const Settings& settings, const Layout& layout, const std::string& issuer,
                 const std::vector<TokenKey>& keys);

// The whole text: the blocks, and the servers of the layout in their backends.
std::string config_text(const Blocks& blocks, const Layout& layout);

// The blocks of a text that config_text() has made.
Blocks read_blocks(const std::string& text);

// True if a process with the blocks `running` can serve `wanted`: it has all of them.
bool can_serve(const Blocks& running, const Blocks& wanted);

// Parts of a server's line, in the configuration and in `add server`.
std::string server_options(const Server& server, bool by_hash);

std::string table_file(const Settings& settings, const std::string& table);
std::string table_text(const std::map<std::string, std::string>& rows);

// The Lua program beside the configuration: requests for a service that has no replica wait in it.
extern const char* const kHoldProgram;

// Keys by key id. Keys of other kinds than EC P-256 are left out; error malformed: it is no key
// set.
Result<std::map<std::string, std::string>> pem_of_keys(const std::string& jwks);

}  // namespace gantry::gate
