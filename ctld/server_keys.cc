// Keys that are in the state directory at start: nodes.d/NAME.pub enrols node NAME (Z85 or hex),
// users.d/NAME.pub registers a key for user NAME (hex). A new cluster gets its first identities in
// this way; later ones come from `gctl enroll` and `gctl key add`. These files never undo such a
// change: a file is used once, and only for a key that is not known yet.
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

void Server::enroll_from_files() {
  for (const std::string& path : key_files(config_.controller.state_dir + "/nodes.d"))
    enroll_from_file(path, true);
  for (const std::string& path : key_files(config_.controller.state_dir + "/users.d"))
    enroll_from_file(path, false);
}

void Server::enroll_from_file(const std::string& path, bool node) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  const std::string name = fs::path(path).stem().string();
  const auto key = net::parse_public_key(text.str());
  if (!key) {
    log_.write(LogLevel::error, "ignored a key file",
               {{"file", path}, {"error", key.error().message}});
    return;
  }
  core::ClientRequest request;  // belongs to no connection, so its reply is dropped
  request.who.role = proto::Role::admin;
  request.who.owner.user = "(key file)";
  if (node) {
    if (core_->node_of_key(net::to_z85(*key)) == name) return;
    request.message = proto::EnrollNode{name, net::to_z85(*key)};
  } else {
    if (core_->user_of_key(net::to_hex(key->view())) == name) return;
    request.message = proto::RegisterKey{name, net::to_hex(key->view()), false};
  }
  step(std::move(request));
  log_.write(LogLevel::info, node ? "enrolled a node" : "registered a key",
             {{"name", name}, {"file", path}});
}

}  // namespace gantry::ctld
