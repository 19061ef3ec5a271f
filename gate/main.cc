// gantry-gate: takes requests of clients and passes them on to replicas of services.
#include <getopt.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/log/log.h"
#include "common/version.h"
#include "config/config.h"
#include "gate/gate.h"

namespace {

using namespace gantry;

constexpr const char* kUsage =
    R"(usage: gantry-gate [--config FILE] [--log FILE] [--log-level LEVEL] [OPTIONS]

A gate: it passes requests of clients on to the replicas of services, by way of
HAProxy. It runs in the foreground until SIGTERM or SIGINT, which end HAProxy
when it has answered its requests. If the gate is killed, HAProxy goes on, and
the next gate takes it over.

  --config FILE      gantry.yaml (default: $GANTRY_CONF, or
                     /etc/gantry/gantry.yaml)
  --name NAME        what the gate calls itself (default: gate.name)
  --state-dir DIR    where its files are (default: gate.state_dir)
  --listen ADDRESS   HOST:PORT for clients; may be given again (default:
                     gate.listen)
  --table FILE       services from a file as JSON, in the place of the
                     controller
  --log FILE         append the log there (default: standard error)
  --log-level LEVEL  debug, info, warning or error (default: info)
  --version, --help

Example:
  gantry-gate --config /etc/gantry/gantry.yaml --listen 0.0.0.0:80
)";

struct Arguments {
  std::string config, name, state_dir, table;
  std::vector<std::string> listen;
  LogOptions log{.program = "gate", .file = "", .level = LogLevel::info};
};

int complain(const Error& error) {
  std::fprintf(stderr, "gantry-gate: %s\n", error.message.c_str());
  return exit_status_of(error.code);
}

// Fills `args`. Returns an exit status if the program has nothing more to do.
std::optional<int> parse(int argc, char** argv, Arguments& args) {
  const option options[] = {{"config", required_argument, nullptr, 'c'},
                            {"name", required_argument, nullptr, 'n'},
                            {"state-dir", required_argument, nullptr, 's'},
                            {"listen", required_argument, nullptr, 'i'},
                            {"table", required_argument, nullptr, 't'},
                            {"log", required_argument, nullptr, 'l'},
                            {"log-level", required_argument, nullptr, 'L'},
                            {"version", no_argument, nullptr, 'V'},
                            {"help", no_argument, nullptr, 'h'},
                            {nullptr, 0, nullptr, 0}};
  for (int c = 0; (c = ::getopt_long(argc, argv, "h", options, nullptr)) != -1;) {
    switch (c) {
      case 'c': args.config = optarg; break;
      case 'n': args.name = optarg; break;
      case 's': args.state_dir = optarg; break;
      case 'i': args.listen.emplace_back(optarg); break;
      case 't': args.table = optarg; break;
      case 'l': args.log.file = optarg; break;
      case 'L': {
        const auto level = parse_log_level(optarg);
        if (!level) return complain(level.error()), 2;
        args.log.level = *level;
        break;
      }
      case 'V': std::printf("gantry-gate %s\n", std::string(kVersion).c_str()); return 0;
      case 'h': std::fputs(kUsage, stdout); return 0;
      default: std::fputs("Try 'gantry-gate --help'.\n", stderr); return 2;
    }
  }
  if (optind < argc) {
    std::fprintf(stderr, "gantry-gate: '%s' is no option. Try 'gantry-gate --help'.\n",
                 argv[optind]);
    return 2;
  }
  return std::nullopt;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "gate";
}

GateConfig settle(const Config& config, const Arguments& args) {
  GateConfig out = config.gate;
  if (!args.name.empty()) out.name = args.name;
  if (!args.state_dir.empty()) out.state_dir = args.state_dir;
  if (!args.listen.empty()) out.listen = args.listen;
  if (out.name.empty()) out.name = host_name();
  if (out.address.empty() && !out.listen.empty()) out.address = "http://" + out.listen.front();
  if (out.address.empty() && !out.listen_tls.empty())
    out.address = "https://" + out.listen_tls.front();
  return out;
}

int serve(const GateConfig& config, const std::string& table, Logger& log) {
  loop::Loop loop;
  auto gate = gate::Gate::open(config, table, loop, log);
  if (!gate) return complain(gate.error());
  const auto end = [&] { (*gate)->stop([&] { loop.stop(); }); };
  const loop::Watch watches[] = {loop.on_signal(SIGTERM, end), loop.on_signal(SIGINT, end),
                                 loop.on_signal(SIGHUP, [&] { (void)log.reopen(); })};
  log.info("gate", {{"name", config.name}, {"address", config.address}});
  loop.run();
  return 0;
}

// A client.conf beside gantry.yaml has the controller's address, unless GANTRY_CONF is set.
void find_client_config(const std::string& config) {
  const std::string directory = config.substr(0, config.rfind('/') + 1);
  if (directory.empty() || ::access((directory + "client.conf").c_str(), R_OK) != 0) return;
  ::setenv("GANTRY_CONF", directory.c_str(), 0);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments args;
  if (const auto status = parse(argc, argv, args)) return *status;
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_DUMPABLE, 0);  // no core dumps: passwords of doors are in its memory
  const std::string path = args.config.empty() ? default_config_path() : args.config;
  find_client_config(path);
  const auto config = load_config(path);
  if (!config) return complain(config.error());
  auto log = Logger::open(args.log);
  if (!log) return complain(log.error());
  return serve(settle(*config, args), args.table, *log);
}
