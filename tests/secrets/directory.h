// A directory for one test, which goes with it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace gantry::test {

struct Directory {
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "gantry-secrets-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path = name;
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

}  // namespace gantry::test
