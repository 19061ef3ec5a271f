// gantry-ctld: reads its configuration and runs the server until it is told to stop.
#include <getopt.h>

#include <cstdio>
#include <string>

#include "common/log.h"
#include "common/version.h"
#include "ctld/server.h"

namespace {

constexpr const char* kUsage =
    "usage: gantry-ctld [--config FILE] [--log FILE] [--log-level LEVEL]\n"
    "\n"
    "The controller of a Gantry cluster. It runs in the foreground until SIGTERM or SIGINT; "
    "SIGHUP,\n"
    "as gctl reconfigure, makes it read its configuration again.\n"
    "\n"
    "  --config FILE      gantry.yaml (default: $GANTRY_CONF, or /etc/gantry/gantry.yaml)\n"
    "  --log FILE         append the log there (default: standard error)\n"
    "  --log-level LEVEL  debug, info, warning or error (default: info)\n"
    "  --check            read the configuration, say whether it is sound, and exit\n"
    "  --version, --help\n"
    "\n"
    "Exit status: 0 stopped on request, 1 could not start or had to stop, 2 wrong command line.\n";

struct Arguments {
  std::string config;
  gantry::LogOptions log{.program = "ctld", .file = "", .level = gantry::LogLevel::info};
  bool check = false;
};

int complain(const gantry::Error& error) {
  std::fprintf(stderr, "gantry-ctld: %s\n", error.message.c_str());
  return gantry::exit_status_of(error.code);
}

// Fills `args`; an exit status if the program is done already.
std::optional<int> parse(int argc, char** argv, Arguments& args) {
  const option options[] = {{"config", required_argument, nullptr, 'c'},
                            {"log", required_argument, nullptr, 'l'},
                            {"log-level", required_argument, nullptr, 'L'},
                            {"check", no_argument, nullptr, 'k'},
                            {"version", no_argument, nullptr, 'V'},
                            {"help", no_argument, nullptr, 'h'},
                            {nullptr, 0, nullptr, 0}};
  for (int c = 0; (c = getopt_long(argc, argv, "h", options, nullptr)) != -1;) {
    switch (c) {
      case 'c': args.config = optarg; break;
      case 'l': args.log.file = optarg; break;
      case 'L': {
        const auto level = gantry::parse_log_level(optarg);
        if (!level) return complain(level.error()), 2;
        args.log.level = *level;
        break;
      }
      case 'k': args.check = true; break;
      case 'V': std::printf("gantry-ctld %s\n", std::string(gantry::kVersion).c_str()); return 0;
      case 'h': std::fputs(kUsage, stdout); return 0;
      default: std::fputs(kUsage, stderr); return 2;
    }
  }
  if (optind == argc) return std::nullopt;
  std::fprintf(stderr, "gantry-ctld: '%s': no arguments are taken, only options\n", argv[optind]);
  return 2;
}

using gantry::ctld::Server;

gantry::Result<std::unique_ptr<Server>> started(const gantry::Config& config,
                                                const Arguments& args) {
  auto logger = gantry::Logger::open(args.log);
  if (!logger) return tl::unexpected(logger.error());
  auto server = Server::open(config, std::move(*logger));
  if (!server) return server;
  if (auto done = (*server)->start(); !done) return tl::unexpected(done.error());
  return server;
}

// A server after the other, each with what the configuration said when it was started; with what
// it said before, should one not start.
gantry::Result<void> serve(gantry::Config config, const Arguments& args) {
  auto server = started(config, args);
  while (true) {
    if (!server) return tl::unexpected(server.error());
    const auto again = (*server)->run();
    if (!again) return tl::unexpected(again.error());
    if (!*again) return {};
    server->reset();  // lets go of the store and the port
    auto next = gantry::load_config(config.path);
    if (next) {
      server = started(*next, args);
      if (server) {
        config = std::move(*next);
        (*server)->reconfigured();
        continue;
      }
    }
    const std::string why = next ? server.error().message : next.error().message;
    server = started(config, args);
    if (server) (*server)->keeps_config(why);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Arguments args;
  if (const auto status = parse(argc, argv, args)) return *status;
  const auto config =
      gantry::load_config(args.config.empty() ? gantry::default_config_path() : args.config);
  if (!config) return complain(config.error());
  if (args.check) {
    std::printf("%s: sound, %zu nodes in %zu partitions\n", config->path.c_str(),
                config->nodes.size(), config->partitions.size());
    return 0;
  }
  const auto done = serve(*config, args);
  return done ? 0 : complain(done.error());
}
