// Fields with which a job states its purpose, for rules and reports, and its needs for isolation
// and access: secrets of its tenant, and how strong its sandbox is (job_spec.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/fields.h"

namespace gantry {

// The kind of work, for reports and rules; it decides nothing else.
enum class WorkType : std::uint8_t { training = 1, inference = 2, interactive = 3 };
GANTRY_NAMES(WorkType, {training, "training"}, {inference, "inference"},
             {interactive, "interactive"})

// How strong the wall around a job is; a later one is stronger, and slower.
enum class Sandbox : std::uint8_t {
  standard = 1,  // namespaces, seccomp, no capabilities, the user's own uid
  hardened =
      2,  // in addition: fewer system calls, Landlock, less of /proc and /sys, no programs in /tmp
  gvisor = 3,  // a kernel of its own in user space (runsc)
  vm = 4,      // a virtual machine, by a runtime that the node names
};
GANTRY_NAMES(Sandbox, {standard, "standard"}, {hardened, "hardened"}, {gvisor, "gvisor"},
             {vm, "vm"})

// Whether a node has a sandbox, as it found out when its daemon started.
struct SandboxFact {
  Sandbox level = Sandbox::standard;
  std::string why_not;  // "" = it has it
  friend bool operator==(const SandboxFact&, const SandboxFact&) = default;
  GANTRY_FIELDS(FIELD(1, level), FIELD(2, why_not))
};

struct SecretUse {  // --secret=NAME[@VERSION][:FILE]
  std::string name;
  std::uint32_t version = 0;  // 0 = the newest when the job starts
  std::string file;           // file name in the directory of secrets; "" = the secret's name
  friend bool operator==(const SecretUse&, const SecretUse&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, version), FIELD(3, file))
};

struct DatasetUse {  // --dataset=NAME[:rw]
  std::string name;
  bool write = false;
  friend bool operator==(const DatasetUse&, const DatasetUse&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, write))
};

// --stage-in=KEY:PATH, --stage-out=PATH:KEY: a copy between the tenant's part of an object store
// and the job's files. A key that ends with '/' means all that begins with it, and a directory.
struct StageCopy {
  std::string key;   // below the tenant's prefix
  std::string path;  // absolute
  friend bool operator==(const StageCopy&, const StageCopy&) = default;
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, path))
};

// A tenant's part of an object store that speaks S3.
struct ObjectStore {
  std::string endpoint;  // http://HOST[:PORT] or https://HOST[:PORT]; "" = none
  std::string region;
  std::string bucket;
  std::string prefix;       // prefix of all keys: "" or with a '/' at its end
  std::string credentials;  // the tenant's secret with its keys
  friend bool operator==(const ObjectStore&, const ObjectStore&) = default;
  GANTRY_FIELDS(FIELD(1, endpoint), FIELD(2, region), FIELD(3, bucket), FIELD(4, prefix),
                FIELD(5, credentials))
};

// A directory of the site's storage that a job may see, at its own path.
struct StorageMount {
  std::string path;
  bool write = false;
  std::string dataset;  // name of the dataset; "" = the tenant's directory
  // If the file system has project quotas, it counts the directory's contents under the number
  // `project`, and refuses more than `size` and `files`; 0 sets no limit.
  std::uint32_t project = 0;
  std::int64_t size = 0;  // bytes
  std::int64_t files = 0;
  friend bool operator==(const StorageMount&, const StorageMount&) = default;
  GANTRY_FIELDS(FIELD(1, path), FIELD(2, write), FIELD(3, dataset), FIELD(4, project),
                FIELD(5, size), FIELD(6, files))
};

}  // namespace gantry
