#include "noded/options.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <numeric>
#include <string_view>

#include "common/codec/codec.h"
#include "common/net/client.h"
#include "common/net/header.h"
#include "common/proto/messages.h"
#include "common/proto/session.h"
#include "common/text/text.h"
#include "common/version.h"
#include "config/gres.h"
#include "noded/machine/files.h"

namespace gantry::node {

namespace {

struct OptionRow {
  std::string_view name;
  std::string_view value;  // "" = the option takes no value
  std::string_view help;   // with line breaks, for a terminal of 80 columns
};

constexpr std::array<OptionRow, 15> kOptions{{
    {"--config", "FILE", "gantry.yaml (default: $GANTRY_CONF, or\n/etc/gantry/gantry.yaml)"},
    {"--name", "NODE", "which node of the configuration this is\n(default: the host's name)"},
    {"--state-dir", "DIR", "attempts and exit records; one daemon per directory"},
    {"--run-dir", "DIR", "sockets"},
    {"--key", "FILE", "the node's own key pair, enrolled with the controller"},
    {"--enroll", "FILE",
     "a token of `gctl enroll --token`: at the first start\nmakes the key and enrolls it, then "
     "removes the file"},
    {"--listen", "HOST:PORT", "where steps reach this node"},
    {"--cpus", "LIST", "logical CPUs that jobs may have, like 0-3,8"},
    {"--share-cpus", "", "CPUs that are not here are had of those that are;\nto try things out"},
    {"--memory", "SIZE", "for jobs, like 64G"},
    {"--log-file", "FILE", "default: standard error; reopened at SIGHUP"},
    {"--log-level", "LEVEL", "debug, info, warning or error"},
    {"--images", "", "print what the node's image cache holds, and end"},
    {"--help", "", "this text"},
    {"--version", "", "the version"},
}};

Result<void> set(Options& o, std::string_view name, const std::string& value) {
  if (name == "--config")
    o.config = value;
  else if (name == "--name")
    o.node = value;
  else if (name == "--state-dir")
    o.state_dir = value;
  else if (name == "--run-dir")
    o.run_dir = value;
  else if (name == "--key")
    o.key_file = value;
  else if (name == "--enroll")
    o.enroll = value;
  else if (name == "--listen")
    o.listen = value;
  else if (name == "--cpus")
    o.cpus = value;
  else if (name == "--share-cpus")
    o.share_cpus = true;
  else if (name == "--log-file")
    o.log_file = value;
  else if (name == "--images")
    o.images = true;
  else if (name == "--help")
    o.help = true;
  else if (name == "--version")
    o.version = true;
  else if (name == "--memory") {
    const auto bytes = parse_memory(value);
    if (!bytes) return fail(ErrorCode::usage, "--memory: " + bytes.error().message);
    o.memory = *bytes;
  } else if (name == "--log-level") {
    const auto level = parse_log_level(value);
    if (!level) return fail(ErrorCode::usage, "--log-level: " + level.error().message);
    o.log_level = *level;
  }
  return {};
}

Result<std::uint16_t> port_of(const std::string& listen, std::string& host) {
  const auto colon = listen.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return fail(ErrorCode::usage, fmt::format("--listen wants HOST:PORT, not \"{}\"", listen));
  host = listen.substr(0, colon);
  const auto port = parse_integer("the port of --listen", listen.substr(colon + 1), 0, 65535);
  if (!port) return fail(ErrorCode::usage, port.error().message);
  return static_cast<std::uint16_t>(*port);
}

Result<std::vector<std::uint16_t>> wanted_cpus(const Options& options, const NodeConfig& node) {
  if (options.cpus) {
    auto cpus = runtime::parse_cpu_list(*options.cpus);
    std::ranges::sort(cpus);
    cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
    if (cpus.empty())
      return fail(ErrorCode::usage,
                  fmt::format("--cpus wants a list like 0-3,8, not \"{}\"", *options.cpus));
    return cpus;
  }
  if (node.cpu_ids) return *node.cpu_ids;
  std::vector<std::uint16_t> cpus(node.cpus);
  std::iota(cpus.begin(), cpus.end(), std::uint16_t{0});
  return cpus;
}

}  // namespace

std::string usage_text() {
  const std::string next_line = "\n" + std::string(25, ' ');
  std::string out =
      "gantry-noded: runs the jobs of one node of a Gantry cluster\n\n"
      "Usage: gantry-noded --config FILE --name NODE [options]\n\n";
  for (const auto& row : kOptions) {
    out += fmt::format("  {:<22} ", fmt::format("{} {}", row.name, row.value));
    for (const char c : row.help) out += c == '\n' ? next_line : std::string(1, c);
    out += '\n';
  }
  out +=
      "\nStopping it (SIGTERM) leaves its jobs running; the next start finds them again.\n\n"
      "Example:\n  gantry-noded --config /etc/gantry/gantry.yaml --name n1\n";
  return out;
}

Result<Options> parse_options(const std::vector<std::string>& args) {
  Options options;
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::string name = args[i];
    std::optional<std::string> value;
    if (const auto eq = name.find('='); name.starts_with("--") && eq != std::string::npos) {
      value = name.substr(eq + 1);
      name.resize(eq);
    }
    const auto row =
        std::ranges::find_if(kOptions, [&](const OptionRow& r) { return r.name == name; });
    if (row == kOptions.end())
      return fail(ErrorCode::usage,
                  fmt::format("unknown option \"{}\"; --help lists them", args[i]));
    if (row->value.empty() && value)
      return fail(ErrorCode::usage, fmt::format("{} takes no value", name));
    if (!row->value.empty() && !value) {
      if (i + 1 >= args.size())
        return fail(ErrorCode::usage, fmt::format("{} wants a value: {}", name, row->value));
      value = args[++i];
    }
    TRY(set(options, name, value.value_or("")));
  }
  return options;
}

Result<NodeSettings> settle(const Options& options, Config config) {
  NodeSettings out;
  const auto it = std::ranges::find_if(config.nodes,
                                       [&](const NodeConfig& n) { return n.name == options.node; });
  if (it == config.nodes.end())
    return fail(ErrorCode::not_found,
                fmt::format("{} has no node \"{}\"; name one of its nodes with --name", config.path,
                            options.node));
  out.node = *it;
  NodedConfig& noded = config.noded;
  if (options.state_dir) noded.state_dir = *options.state_dir;
  if (options.run_dir) noded.run_dir = *options.run_dir;
  if (options.key_file) noded.key_file = *options.key_file;
  if (options.listen) {
    ASSIGN(port, port_of(*options.listen, noded.listen_host));
    noded.listen_port = *port;
  }
  if (options.memory) out.node.memory = *options.memory;
  ASSIGN(cpus, wanted_cpus(options, out.node));
  out.cpus = std::move(*cpus);
  out.share_cpus = options.share_cpus;
  const auto& runtimes = noded.runtimes;
  out.runs_nothing = std::ranges::find(runtimes, "none") != runtimes.end();
  if (out.runs_nothing && runtimes.size() > 1)
    return fail(ErrorCode::invalid_argument,
                "noded.runtimes: \"none\" runs no job at all, so it stands alone or not at all");
  out.config = std::move(config);
  return out;
}

namespace {

// The promises to jobs that this release can keep.
constexpr std::uint32_t kAbilities = bit_of(NodeAbility::secrets) | bit_of(NodeAbility::storage) |
                                     bit_of(NodeAbility::staging) | bit_of(NodeAbility::doors);

std::string step_address(const NodeSettings& settings, const runtime::NodeFacts& machine) {
  if (!settings.node.address.empty()) return settings.node.address;
  const auto& noded = settings.config.noded;
  const bool anywhere = noded.listen_host == "0.0.0.0" || noded.listen_host == "::";
  return fmt::format("{}:{}", anywhere ? machine.hostname : noded.listen_host, noded.listen_port);
}

}  // namespace

FactsReport node_facts(const NodeSettings& settings, const runtime::NodeFacts& machine) {
  FactsReport out;
  proto::NodeRegister& facts = out.facts;
  facts.abilities = kAbilities;
  facts.node = settings.node.name;
  facts.protocol = proto::kProtocolVersion;
  facts.version = kVersion;
  facts.boot_id = machine.boot_id;
  facts.address = step_address(settings, machine);
  facts.sockets = machine.sockets;
  facts.cores_per_socket = machine.cores_per_socket;
  facts.threads_per_core = machine.threads_per_core;
  facts.memory = settings.node.memory;
  facts.scratch = settings.node.scratch;
  facts.cpus = settings.cpus;
  for (const DeclaredGres& g : declared_gres(settings.node))
    facts.gres.push_back({g.name, g.count});
  // A node without a runtime needs no resources of the machine.
  if (settings.runs_nothing) return out;

  if (!settings.share_cpus)
    std::erase_if(facts.cpus, [&](std::uint16_t id) {
      return std::ranges::none_of(machine.cpus,
                                  [&](const runtime::CpuFact& c) { return c.id == id; });
    });
  if (facts.cpus.size() < settings.cpus.size())
    out.warnings.push_back(fmt::format("{} CPUs are declared, {} of them exist here",
                                       settings.cpus.size(), facts.cpus.size()));
  if (facts.memory > machine.memory) {
    out.warnings.push_back(fmt::format("{} of memory is declared, {} exists",
                                       format_memory_rounded(facts.memory),
                                       format_memory_rounded(machine.memory)));
    facts.memory = machine.memory;
  }
  if (facts.scratch > machine.scratch_free) {
    out.warnings.push_back(fmt::format("{} of scratch space is declared, {} is free",
                                       format_memory_rounded(facts.scratch),
                                       format_memory_rounded(machine.scratch_free)));
    facts.scratch = machine.scratch_free;
  }
  return out;
}

namespace {

constexpr Duration kAnswerTime = seconds(10);

template <class T>
constexpr std::uint16_t number = static_cast<std::uint16_t>(proto::number_of<T>);

// The error unavailable means that nobody answered.
Result<void> show(const net::ClientOptions& options, const proto::UseEnrollToken& message) {
  auto client = net::Client::connect(options);
  if (!client) return fail(ErrorCode::unavailable, client.error().message);
  const net::HeaderBytes header({proto::kProtocolVersion, number<proto::UseEnrollToken>, 1});
  if (auto sent = client->send(header.view(), codec::encode(message), kAnswerTime); !sent)
    return fail(ErrorCode::unavailable, sent.error().message);
  const auto frames = client->receive(kAnswerTime);
  if (!frames) return fail(ErrorCode::unavailable, frames.error().message);
  ASSIGN(head, frames->size() == net::kFrames
                   ? net::decode_header((*frames)[0])
                   : fail(ErrorCode::malformed, "the controller's answer has no header"));
  if (head->type == number<proto::Ok>) return {};
  const auto refused = codec::decode<proto::ErrorReply>((*frames)[1]);
  return fail(ErrorCode::unauthenticated,
              refused ? refused->message : "the controller's answer cannot be read");
}

}  // namespace

Result<void> enroll_once(const std::string& token_file, const std::string& key_file,
                         const std::string& node, const std::string& endpoint,
                         const net::PublicKey& server) {
  if (::access(token_file.c_str(), F_OK) != 0 && errno == ENOENT) return {};
  ASSIGN(text, runtime::read_file(token_file));
  if (::access(key_file.c_str(), F_OK) != 0)
    TRY(net::save_key_pair(key_file, net::generate_key_pair()));
  ASSIGN(keys, net::load_key_pair(key_file));
  net::ClientOptions options;
  options.address = endpoint;
  options.server_key = server;
  options.keys = *keys;
  const proto::UseEnrollToken message{node, text->substr(0, text->find_first_of(" \t\r\n"))};
  const auto done = show(options, message);
  if (!done)
    return fail(done.error().code, fmt::format("{}: {}", token_file, done.error().message));
  if (::unlink(token_file.c_str()) != 0)
    return fail(ErrorCode::io_error, fmt::format("{} was used and cannot be removed: {}",
                                                 token_file, std::strerror(errno)));
  return {};
}

}  // namespace gantry::node
