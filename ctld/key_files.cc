// Keys that are in the state directory at start: nodes.d/NAME.pub enrols node NAME (Z85 or hex),
// users.d/NAME.pub registers a key for user NAME (hex). A new cluster gets its first identities in
// this way; later ones come from `gctl enroll` and `gctl key add`. These files never undo such a
// change, so a revoked key stays revoked: a file is used once, and then renamed to .pub.used.
#include "ctld/key_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/proto/control.h"
#include "common/proto/session.h"
#include "ctld/core/request.h"

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

// Returns false if the file has no key.
bool enroll_from_file(const Shell& shell, const std::string& path, bool node) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  const std::string name = fs::path(path).stem().string();
  const auto key = net::parse_public_key(text.str());
  if (!key) {
    shell.log.write(LogLevel::error, "ignored a key file",
                    {{"file", path}, {"error", key.error().message}});
    return false;
  }
  core::ClientRequest request;  // an input of no connection, so its reply is dropped
  request.who.role = proto::Role::admin;
  request.who.owner.user = "(key file)";
  if (node) {
    if (shell.core.node_of_key(net::to_z85(*key)) == name) return true;
    request.message = proto::EnrollNode{name, net::to_z85(*key)};
  } else {
    if (shell.core.user_of_key(net::to_hex(key->view())) == name) return true;
    request.message = proto::RegisterKey{name, net::to_hex(key->view()), false};
  }
  shell.step(std::move(request));
  shell.log.write(LogLevel::info, node ? "enrolled a node" : "registered a key",
                  {{"name", name}, {"file", path}});
  return true;
}

}  // namespace

std::vector<std::string> enroll_from_files(const Shell& shell) {
  std::vector<std::string> used;
  for (const bool node : {true, false})
    for (std::string& path :
         key_files(shell.config.controller.state_dir + (node ? "/nodes.d" : "/users.d")))
      if (enroll_from_file(shell, path, node)) used.push_back(std::move(path));
  return used;
}

void key_files_used(const Shell& shell, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::error_code error;
    fs::rename(path, path + ".used", error);
    if (error)
      shell.log.write(LogLevel::warning,
                      "a key file cannot be renamed; its key counts again at the next start",
                      {{"file", path}, {"error", error.message()}});
  }
}

}  // namespace gantry::ctld
