// The command line of gantry-noded, and the configuration with these options applied. Options
// override the file, so that several nodes of one file can run on one machine (`gantry up`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/log/log.h"
#include "common/net/keys.h"
#include "common/proto/node_report.h"
#include "common/result.h"
#include "config/config.h"
#include "noded/machine/discover.h"

namespace gantry::node {

struct Options {
  std::string config;                    // --config; "" = default_config_path()
  std::string node;                      // --name
  std::optional<std::string> state_dir;  // --state-dir
  std::optional<std::string> run_dir;    // --run-dir
  std::optional<std::string> key_file;   // --key
  std::string enroll;                    // --enroll FILE; "" = the key is enrolled already
  std::optional<std::string> listen;     // --listen HOST:PORT
  std::optional<std::string> cpus;       // --cpus LIST
  bool share_cpus = false;               // --share-cpus
  std::optional<std::int64_t> memory;    // --memory SIZE, bytes
  std::string log_file;                  // --log-file; "" = standard error
  LogLevel log_level = LogLevel::info;   // --log-level
  bool images = false;                   // --images
  bool help = false;
  bool version = false;
};

std::string usage_text();
// Error usage: an option is not known, has no value, or has a wrong one.
Result<Options> parse_options(const std::vector<std::string>& args);

// The settings of this daemon: the file with the options applied.
struct NodeSettings {
  Config config;  // config.noded, with the options applied
  NodeConfig node;
  std::vector<std::uint16_t> cpus;  // CPUs of the node, sorted
  bool share_cpus = false;    // true: some of the CPUs do not exist here: see RealRuntimeOptions
  bool runs_nothing = false;  // runtimes: [none]
};
// Error not_found: the file has no node of that name.
Result<NodeSettings> settle(const Options& options, Config config);

// The facts that this node tells the controller about itself: the resources that the configuration
// promises, reduced to what the machine has. The controller drains a node that has less than was
// declared.
struct FactsReport {
  proto::NodeRegister facts;
  std::vector<std::string> warnings;  // what the machine lacks
};

FactsReport node_facts(const NodeSettings& settings, const runtime::NodeFacts& machine);

// The first start of a node: it makes its key, and sends the controller the token that an
// administrator made for it (gctl enroll --token).

// Makes the key pair in `key_file` unless it exists, has the controller register it for the node,
// and removes the token's file. Does nothing if there is no such file, because the token was used
// at an earlier start. The error unavailable means that the controller was not reached: the token
// is still valid, and the daemon can be started again.
Result<void> enroll_once(const std::string& token_file, const std::string& key_file,
                         const std::string& node, const std::string& endpoint,
                         const net::PublicKey& server);

}  // namespace gantry::node
