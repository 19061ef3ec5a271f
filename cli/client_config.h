// The client's configuration: what a command needs before it can ask the controller anything, which
// is where the controller is, its public key, and how to prove who the user is. The file
// client.conf has one `key = value` per line and lies beside gantry.yaml. It is a separate file
// because a command starts in under 3 ms, and reading YAML alone would take another one.
//
//   cluster = lab
//   controller = 127.0.0.1:6870
//   public_key = <40 characters of Z85>
//   auth = any           # any: the key file if it can be read, else munge; or key, munge
//   key_file = /home/%u/.config/gantry/user.key      # %u is the login name
//   munge_socket = /run/munge/munge.socket.2
//   socket = /run/gantry/cli.sock   # of a login node's daemon, tried first; or none
#pragma once

#include <string>
#include <vector>

#include "common/net/keys.h"
#include "common/result.h"

namespace gantry::cli {

// How a command proves who the user is. none: the job's node vouches for the user. token: the token
// in the environment is used, whatever the file says.
enum class Auth : std::uint8_t { any, key, munge, none, token };
// The first variable that is set is used.
inline constexpr const char* kTokenVariables[] = {"GANTRY_TOKEN", "SLURM_JWT"};

struct ClientConfig {
  std::string path;  // path of the file, for messages
  std::string cluster;
  std::string address;  // tcp://HOST:PORT or ipc:///PATH
  net::PublicKey server_key;
  Auth auth = Auth::any;
  std::string key_file;      // may have %u for the login name, see key_path()
  std::string munge_socket;  // "" = munge's default socket
  std::string socket;        // socket of a login node's daemon; "" = none
  std::string token;         // used with Auth::token
};

// The socket of a login node's daemon, where client.conf names none. It is used only if there is no
// key_file: a key may belong to another user, and over the socket only the process's own user
// counts.
inline constexpr const char* kUsualSocket = "/run/gantry/cli.sock";

// The path of the key file for the user of this process.
std::string key_path(const ClientConfig& config);

// Finds the configuration. Inside a job $GANTRY_JOB_SOCKET is used
// (common/net/job_socket_client.h). Elsewhere the first of these files that exists is used:
// $GANTRY_CONF (a directory, client.conf itself, or gantry.yaml beside it);
// ~/.config/gantry/client.conf; $XDG_STATE_HOME/gantry/client.conf (`gantry up` of an ordinary
// user); /etc/gantry/client.conf; /var/lib/gantry/local/client.conf (`gantry up` of root).
Result<ClientConfig> find_client_config();
std::vector<std::string> client_config_paths();
bool is_inside_job();  // whether $GANTRY_JOB_SOCKET is used

Result<ClientConfig> parse_client_config(std::string_view text, const std::string& path);

// The text of a file that parse_client_config can read. `address` is HOST:PORT; key_file and socket
// are left out if they are "".
std::string client_config_text(const std::string& cluster, const std::string& address,
                               const net::PublicKey& server_key, const std::string& key_file,
                               const std::string& socket = {});

std::string state_home();  // $XDG_STATE_HOME, else ~/.local/state; "" if the user has no home
std::string login_name();  // name of the effective uid; the number if it has no name

}  // namespace gantry::cli
