// Keys that are in the state directory at start: nodes.d/NAME.pub enrols node NAME (Z85 or hex),
// users.d/NAME.pub registers a key for user NAME (hex). A new cluster gets its first identities in
// this way; later ones come from `gctl enroll` and `gctl key add`. These files never undo such a
// change, so that a key that was taken back stays so: a file is used once, and is named .pub.used
// from then on.
#include "ctld/server.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gantry::ctld {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> key_files(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".pub") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<std::string> Server::enroll_from_files() {
  std::vector<std::string> used;
  for (const bool node : {true, false})
    for (std::string& path :
         key_files(config_.controller.state_dir + (node ? "/nodes.d" : "/users.d")))
      if (enroll_from_file(path, node)) used.push_back(std::move(path));
  return used;
}

void Server::key_files_used(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::error_code error;
    fs::rename(path, path + ".used", error);
    if (error)
      log_.write(LogLevel::warning,
                 "a key file cannot be renamed; its key counts again at the next start",
                 {{"file", path}, {"error", error.message()}});
  }
}

// False if the file has no key.
bool Server::enroll_from_file(const std::string& path, bool node) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  const std::string name = fs::path(path).stem().string();
  const auto key = net::parse_public_key(text.str());
  if (!key) {
    log_.write(LogLevel::error, "ignored a key file",
               {{"file", path}, {"error", key.error().message}});
    return false;
  }
  core::ClientRequest request;  // belongs to no connection, so its reply is dropped
  request.who.role = proto::Role::admin;
  request.who.owner.user = "(key file)";
  if (node) {
    if (core_->node_of_key(net::to_z85(*key)) == name) return true;
    request.message = proto::EnrollNode{name, net::to_z85(*key)};
  } else {
    if (core_->user_of_key(net::to_hex(key->view())) == name) return true;
    request.message = proto::RegisterKey{name, net::to_hex(key->view()), false};
  }
  step(std::move(request));
  log_.write(LogLevel::info, node ? "enrolled a node" : "registered a key",
             {{"name", name}, {"file", path}});
  return true;
}

}  // namespace gantry::ctld
