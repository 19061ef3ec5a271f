// The command line of gantry-noded, and the configuration with these options applied. Options win
// over the file, so that several nodes of one file can live on one machine (`gantry up`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/log/log.h"
#include "common/result.h"
#include "config/config.h"

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
// usage: an option is not known, has no value, or has a wrong one.
Result<Options> parse_options(const std::vector<std::string>& args);

// The settings of this daemon: the file with the options applied.
struct NodeSettings {
  Config config;  // config.noded has the options applied
  NodeConfig node;
  std::vector<std::uint16_t> cpus;  // CPUs of the node, sorted
  bool share_cpus = false;    // true: some of the CPUs do not exist here: see RealRuntimeOptions
  bool runs_nothing = false;  // runtimes: [none]
};
// not_found: the file has no node of that name.
Result<NodeSettings> settle(const Options& options, Config config);

}  // namespace gantry::node
