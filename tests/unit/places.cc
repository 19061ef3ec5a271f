// The paths of the sources and of the built programs, which no other object of a test contains.
#include "tests/places.h"

namespace gantry {

const std::string& source_dir() {
  static const std::string path = GANTRY_SOURCE_DIR;
  return path;
}

const std::string& program_dir() {
  static const std::string path = GANTRY_BIN_DIR;
  return path;
}

}  // namespace gantry
