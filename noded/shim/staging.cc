#include "noded/shim/staging.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "noded/machine/cgroup.h"
#include "noded/runtime/job_dir.h"
#include "noded/runtime/secret_files.h"

namespace gantry::runtime {
namespace {

// rclone's exit status when the source does not exist.
constexpr int kNoDirectory = 3, kNoFile = 4, kNothingCopied = 9;

std::string find_rclone() {
  for (const char* path : {"/usr/local/bin/rclone", "/usr/bin/rclone"})
    if (::access(path, X_OK) == 0) return path;
  return {};
}

// `memory` is the job's limit in bytes, 0 = no limit. The copy counts for it, and leaves half of it
// to the page cache of what it copies.
std::vector<std::string> environment_of(const ObjectStore& store, const StoreKeys& keys,
                                        std::int64_t memory) {
  std::map<std::string, std::string> env{{"PATH", "/usr/bin:/bin"},
                                         {"HOME", "/nonexistent"},
                                         {"RCLONE_CONFIG", ""},  // not the user's own configuration
                                         {"RCLONE_CONFIG_STORE_TYPE", "s3"},
                                         {"RCLONE_CONFIG_STORE_PROVIDER", "Other"},
                                         {"RCLONE_CONFIG_STORE_ENDPOINT", store.endpoint},
                                         {"RCLONE_CONFIG_STORE_REGION", store.region},
                                         {"RCLONE_CONFIG_STORE_ACCESS_KEY_ID", keys.access},
                                         {"RCLONE_CONFIG_STORE_SECRET_ACCESS_KEY", keys.secret},
                                         {"RCLONE_CONFIG_STORE_FORCE_PATH_STYLE", "true"},
                                         {"RCLONE_CONFIG_STORE_NO_CHECK_BUCKET", "true"}};
  if (memory > 0) env["GOMEMLIMIT"] = std::to_string(memory / 2);
  if (!keys.session.empty()) env["RCLONE_CONFIG_STORE_SESSION_TOKEN"] = keys.session;
  std::vector<std::string> out;
  for (const auto& [name, value] : env) out.push_back(name + "=" + value);
  return out;
}

enum class Way { in, out };

Result<void> copy_one(const Shim& shim, Signals& signals, const StoreKeys& keys,
                      const StageCopy& copy, Way way) {
  const LaunchRequest& request = shim.request;
  const std::string what = way == Way::in ? "stage-in of " + copy.key + " to " + copy.path
                                          : "stage-out of " + copy.path + " to " + copy.key;
  const std::string there =
      "store:" + request.objects->bucket + "/" + request.objects->prefix + copy.key;
  const bool whole = copy.key.ends_with('/');
  ChildSpec spec;
  spec.argv = {find_rclone()};
  if (spec.argv[0].empty())
    return fail(ErrorCode::unsupported, what + ": rclone is not installed on this node");
  spec.argv.insert(spec.argv.end(),
                   {whole ? "copy" : "copyto", way == Way::in ? there : copy.path,
                    way == Way::in ? copy.path : there, "--retries=3", "--low-level-retries=3",
                    // To rclone a missing key looks like an empty directory.
                    "--ignore-times", "--error-on-no-transfer", "--contimeout=20s", "--timeout=2m",
                    "--transfers=2", "--checkers=2", "--buffer-size=4M", "--log-level=ERROR"});
  spec.env = environment_of(*request.objects, keys, request.memory);
  if (!shim.setup.rootless) {
    spec.uid = request.owner.uid.value();
    spec.gid = request.owner.gid.value();
    for (const Gid gid : request.owner.groups) spec.groups.push_back(gid.value());
  }
  spec.own_group = true;
  spec.goes_first = true;
  // What the copy uses counts for the job, and within the job's limits.
  const auto entries = open_cgroup_entries(shim.setup.cgroups, job_cgroup(request.key));
  const Fd directory = open_cgroup_directory(shim.setup.cgroups, job_cgroup(request.key));
  spec.cgroup = &entries;
  spec.cgroup_directory = directory.get();
  auto end = run_to_end(std::move(spec), signals, shim.setup.stage_timeout);
  if (!end) return fail(end.error().code, what + ": " + end.error().message);
  const bool missing = WIFEXITED(end->status) && (WEXITSTATUS(end->status) == kNoDirectory ||
                                                  WEXITSTATUS(end->status) == kNoFile ||
                                                  WEXITSTATUS(end->status) == kNothingCopied);
  if (missing)
    return fail(ErrorCode::not_found,
                what + ": there is no " + (way == Way::in ? "such key" : "such file"));
  const auto said = said_of("rclone", std::move(*end));
  if (!said) {
    // A path that the user may not write is not this node's fault: every node would refuse it.
    const bool refused = said.error().message.find("permission denied") != std::string::npos;
    return fail(refused ? ErrorCode::permission_denied : said.error().code,
                what + ": " + said.error().message);
  }
  return {};
}

Result<void> copy_all(const Shim& shim, Signals& signals, const std::vector<StageCopy>& copies,
                      Way way) {
  if (copies.empty()) return {};
  if (!shim.request.objects)
    return fail(ErrorCode::not_found, "its tenant has no object store any more to stage files");
  const auto content = read_store_keys(shim.setup.state_dir, shim.request.key);
  if (!content) return fail(ErrorCode::runtime_failed, "the keys to the object store are gone");
  ASSIGN(keys, read_keys(*content));
  for (const StageCopy& copy : copies) TRY(copy_one(shim, signals, *keys, copy, way));
  return {};
}

}  // namespace

Result<StoreKeys> read_keys(std::string_view content) {
  StoreKeys keys;
  std::vector<std::string> lines;
  for (const std::string& line : split(content, '\n'))
    if (std::string text = trim(line); !text.empty()) lines.push_back(std::move(text));
  for (const std::string& line : lines) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = trim(line.substr(0, equals));
    const std::string value = trim(line.substr(equals + 1));
    if (name == "aws_access_key_id") keys.access = value;
    if (name == "aws_secret_access_key") keys.secret = value;
    if (name == "aws_session_token") keys.session = value;
  }
  if (keys.access.empty() && lines.size() == 1) {
    const std::size_t colon = lines[0].find(':');
    keys.access = lines[0].substr(0, colon);
    if (colon != std::string::npos) keys.secret = lines[0].substr(colon + 1);
  } else if (keys.access.empty() && lines.size() == 2) {
    keys.access = lines[0];
    keys.secret = lines[1];
  }
  if (!keys.access.empty() && !keys.secret.empty()) return keys;
  return fail(ErrorCode::invalid_argument,
              "the secret with the keys to the object store has none in it: its content is "
              "ACCESS_KEY:SECRET_KEY, or a file with aws_access_key_id and aws_secret_access_key");
}

Result<void> stage_in(const Shim& shim, Signals& signals) {
  return copy_all(shim, signals, shim.request.stage_in, Way::in);
}

Result<void> stage_out(const Shim& shim, Signals& signals) {
  return copy_all(shim, signals, shim.request.stage_out, Way::out);
}

}  // namespace gantry::runtime
