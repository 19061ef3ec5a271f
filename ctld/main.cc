// gantry-ctld: reads its configuration and runs the server until it is told to stop.
#include <getopt.h>
#include <sys/prctl.h>

#include <cstdio>
#include <string>

#include "common/log/log.h"
#include "common/version.h"
#include "ctld/age/accept.h"
#include "ctld/server.h"
#include "ctld/store/fault_guard.h"
#include "ctld/store/scrub.h"
#include "ctld/store/store.h"

namespace {

constexpr const char* kUsage =
    R"(usage: gantry-ctld [--config FILE] [--log FILE] [--log-level LEVEL]

The controller of a Gantry cluster. It runs in the foreground until SIGTERM or
SIGINT; SIGHUP, as gctl reconfigure, makes it read its configuration again.

  --config FILE      gantry.yaml (default: $GANTRY_CONF, or
                     /etc/gantry/gantry.yaml)
  --log FILE         append the log there (default: standard error)
  --log-level LEVEL  debug, info, warning or error (default: info)
  --check            read the configuration, say whether it is sound, and exit
  --check-store      look at every page and checksum of the job store, which no
                     controller may have open, say what is damaged, and exit;
                     nothing is changed
  --accept-old-store go on with a store that is older than what its nodes know:
                     epoch and job ids jump past those, waiting jobs are held,
                     newer jobs on nodes are left alone; then exit, to be
                     started as usual
  --version, --help

Example:
  gantry-ctld --config /etc/gantry/gantry.yaml --check

Exit status: 0 stopped on request, or sound; 1 could not start or had to stop;
2 wrong command line; 65 what it has stored is damaged: starting it again does
not help.
)";

struct Arguments {
  std::string config;
  gantry::LogOptions log{.program = "ctld", .file = "", .level = gantry::LogLevel::info};
  bool check = false;
  bool check_store = false;
  bool accept_old_store = false;
};

// The exit status for a server that could not start or had to stop.
int exit_status_of(const gantry::Error& error) {
  return error.code == gantry::ErrorCode::malformed ? gantry::store::kDamagedExit
                                                    : gantry::exit_status_of(error.code);
}

int complain(const gantry::Error& error) {
  std::fprintf(stderr, "gantry-ctld: %s\n", error.message.c_str());
  return gantry::exit_status_of(error.code);
}

// Fills `args`. Returns an exit status if the program has nothing more to do.
std::optional<int> parse(int argc, char** argv, Arguments& args) {
  const option options[] = {{"config", required_argument, nullptr, 'c'},
                            {"log", required_argument, nullptr, 'l'},
                            {"log-level", required_argument, nullptr, 'L'},
                            {"check", no_argument, nullptr, 'k'},
                            {"check-store", no_argument, nullptr, 's'},
                            {"accept-old-store", no_argument, nullptr, 'a'},
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
      case 's': args.check_store = true; break;
      case 'a': args.accept_old_store = true; break;
      case 'V': std::printf("gantry-ctld %s\n", std::string(gantry::kVersion).c_str()); return 0;
      case 'h': std::fputs(kUsage, stdout); return 0;
      default: std::fputs(kUsage, stderr); return 2;
    }
  }
  if (optind == argc) return std::nullopt;
  std::fprintf(stderr, "gantry-ctld: '%s': no arguments are taken, only options\n", argv[optind]);
  return 2;
}

int accept_old_store(const gantry::Config& config) {
  const auto mark = gantry::age::accept_old_store(config);
  if (!mark) {
    complain(mark.error());
    return exit_status_of(mark.error());
  }
  std::printf(
      "the store in %s is accepted: job ids go on above %llu; jobs that wait are held at the "
      "next start, and newer jobs on nodes are left alone\n",
      config.controller.state_dir.c_str(), static_cast<unsigned long long>(mark->job.value()));
  return 0;
}

int check_store(const std::string& directory) {
  const auto report = gantry::store::check_store(directory);
  if (!report) {
    complain(report.error());
    return exit_status_of(report.error());
  }
  for (const std::string& damaged : report->damaged)
    std::fprintf(stderr, "gantry-ctld: %s\n", damaged.c_str());
  if (report->more_damaged > 0)
    std::fprintf(stderr, "gantry-ctld: and %llu entries more\n",
                 static_cast<unsigned long long>(report->more_damaged));
  if (!report->damaged.empty()) return gantry::store::kDamagedExit;
  if (report->format < gantry::store::kSealedFormat)
    std::printf(
        "%s/data.mdb: %llu pages are sound; of format %llu, it has no checksums until a "
        "controller of this release opens it\n",
        directory.c_str(), static_cast<unsigned long long>(report->pages),
        static_cast<unsigned long long>(report->format));
  else
    std::printf("%s/data.mdb: sound, %llu entries of %llu octets on %llu pages\n",
                directory.c_str(), static_cast<unsigned long long>(report->entries),
                static_cast<unsigned long long>(report->octets),
                static_cast<unsigned long long>(report->pages));
  return 0;
}

using gantry::ctld::Server;

gantry::Result<std::unique_ptr<Server>> started(const gantry::Config& config,
                                                const Arguments& args) {
  ASSIGN(logger, gantry::Logger::open(args.log));
  auto server = Server::open(config, std::move(*logger));
  if (!server) return server;
  TRY((*server)->start());
  return server;
}

// Runs one server after the other, each with the configuration as it was when it was started. If a
// server cannot start with a new configuration, the next one uses the old configuration.
gantry::Result<void> serve(gantry::Config config, const Arguments& args) {
  auto server = started(config, args);
  while (true) {
    if (!server) return tl::unexpected(server.error());
    ASSIGN(again, (*server)->run());
    if (!*again) return {};
    server->reset();  // releases the store and the port before the next server starts
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
  ::prctl(PR_SET_DUMPABLE, 0);  // secrets are in its memory, and must not be in a core dump
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
  gantry::store::say_store_faults("gantry-ctld");
  if (args.accept_old_store) return accept_old_store(*config);
  if (args.check_store) return check_store(config->controller.state_dir);
  const auto done = serve(*config, args);
  if (done) return 0;
  complain(done.error());
  return exit_status_of(done.error());
}
