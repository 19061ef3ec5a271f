// Finds and reads client.conf.
#include "cli/client_config.h"

#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/files.h"
#include "common/net/job_socket_client.h"
#include "config/nearest.h"

namespace gantry::cli {
namespace {

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<void> set_value(ClientConfig& config, std::string_view key, std::string_view value) {
  if (key == "cluster") {
    config.cluster = value;
  } else if (key == "controller") {
    const std::size_t colon = value.rfind(':');
    if (!value.starts_with('/') &&
        (colon == std::string_view::npos || colon == 0 || colon + 1 == value.size()))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("\"{}\" is not HOST:PORT or the path of a socket", value));
    config.address = (value.starts_with('/') ? "ipc://" : "tcp://") + std::string(value);
  } else if (key == "public_key") {
    ASSIGN(parsed, net::parse_public_key(value));
    config.server_key = *parsed;
  } else if (key == "auth") {
    if (value == "any")
      config.auth = Auth::any;
    else if (value == "key")
      config.auth = Auth::key;
    else if (value == "munge")
      config.auth = Auth::munge;
    else
      return fail(ErrorCode::invalid_argument,
                  fmt::format("\"{}\" is not any, key or munge", value));
  } else if (key == "key_file") {
    config.key_file = value;
  } else if (key == "munge_socket") {
    config.munge_socket = value;
  } else if (key == "socket") {
    if (value != "none" && !value.starts_with('/'))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("\"{}\" is neither the path of a socket nor none", value));
    config.socket = value;
  } else {
    static constexpr std::string_view kKeys[] = {"cluster",  "controller",   "public_key", "auth",
                                                 "key_file", "munge_socket", "socket"};
    return fail(ErrorCode::invalid_argument,
                fmt::format("unknown key{}", did_you_mean(key, kKeys)));
  }
  return {};
}

void take_token(ClientConfig& config) {
  for (const char* name : kTokenVariables)
    if (std::string token = environment(name); !token.empty()) {
      config.token = std::move(token);
      config.auth = Auth::token;
      return;
    }
}

}  // namespace

std::string login_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry == nullptr ? std::to_string(::geteuid()) : entry->pw_name;
}

std::string state_home() {
  if (std::string home = environment("XDG_STATE_HOME"); home.starts_with('/')) return home;
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.local/state";
}

std::vector<std::string> client_config_paths() {
  if (const std::string named = environment("GANTRY_CONF"); !named.empty()) {
    if (named.ends_with(".conf")) return {named};
    if (named.ends_with(".yaml") || named.ends_with(".yml")) {
      const std::size_t slash = named.rfind('/');
      return {(slash == std::string::npos ? "." : named.substr(0, slash)) + "/client.conf"};
    }
    return {named + "/client.conf"};
  }
  std::vector<std::string> paths;
  if (const std::string home = environment("HOME"); !home.empty())
    paths.push_back(home + "/.config/gantry/client.conf");
  if (const std::string state = state_home(); !state.empty())
    paths.push_back(state + "/gantry/client.conf");
  paths.emplace_back("/etc/gantry/client.conf");
  paths.emplace_back("/var/lib/gantry/local/client.conf");
  return paths;
}

Result<ClientConfig> parse_client_config(std::string_view text, const std::string& path) {
  ClientConfig config;
  config.path = path;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}:{}: this is not `key = value`", path, number));
    const std::string_view key = trim(line.substr(0, equals));
    const std::string_view value = trim(line.substr(equals + 1));
    if (const auto done = set_value(config, key, value); !done)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}:{}: {}: {}", path, number, key, done.error().message));
  }
  if (config.address.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: `controller = HOST:PORT` is missing", path));
  if (config.server_key == net::PublicKey{})
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: `public_key = ...` of the controller is missing", path));
  if (config.auth == Auth::key && config.key_file.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: auth = key needs `key_file = ...`", path));
  if (config.socket == "none" || config.auth == Auth::key)
    config.socket.clear();
  else if (config.socket.empty() && config.key_file.empty())
    config.socket = kUsualSocket;
  return config;
}

// Looking up the name takes time, so it is done only if a key is needed.
std::string key_path(const ClientConfig& config) {
  std::string path = config.key_file;
  if (const std::size_t at = path.find("%u"); at != std::string::npos)
    path.replace(at, 2, login_name());
  return path;
}

bool is_inside_job() {
  return !environment(net::kJobSocketVariable).empty();
}

Result<ClientConfig> find_client_config() {
  if (std::string socket = environment(net::kJobSocketVariable); !socket.empty()) {
    ClientConfig config;
    config.path = net::kJobSocketVariable;
    config.address = std::move(socket);
    config.auth = Auth::none;
    return config;
  }
  const std::vector<std::string> paths = client_config_paths();
  for (const std::string& path : paths) {
    ASSIGN(text, read_small_file(path));
    if (!*text) continue;
    auto config = parse_client_config(**text, path);
    if (config) take_token(*config);
    return config;
  }
  if (paths.size() == 1)
    return fail(ErrorCode::not_found, fmt::format("there is no {} (from GANTRY_CONF)", paths[0]));
  return fail(
      ErrorCode::not_found,
      "no client.conf is found; start a cluster with `gantry up`, or set GANTRY_CONF to the "
      "directory that has one");
}

std::string client_config_text(const std::string& cluster, const std::string& address,
                               const net::PublicKey& server_key, const std::string& key_file,
                               const std::string& socket) {
  std::string text = fmt::format(
      "# Where Gantry's commands find the controller, and how they show who you are.\n"
      "cluster = {}\ncontroller = {}\npublic_key = {}\nauth = any\n",
      cluster, address, net::to_z85(server_key));
  if (!key_file.empty()) text += fmt::format("key_file = {}\n", key_file);
  if (!socket.empty()) text += fmt::format("socket = {}\n", socket);
  return text;
}

}  // namespace gantry::cli
