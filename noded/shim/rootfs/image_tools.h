// Runs the programs that images need, each with as few rights as possible: skopeo as the job's
// user, umoci and unsquashfs as a user id that owns nothing but the slot's out/.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/result.h"
#include "noded/image/manifest.h"
#include "noded/image/store.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

inline constexpr const char* kSquashfsFile = "image.sqsh";  // file name in a slot's layout/

ImageStore store_of(const NodeSetup& setup);

// A slot with an empty layout/ and out/.
Result<Slot> prepare_slot(const Shim& shim, const ImageStore& store, const Stopped& stopped);
// Makes the slot's incoming/, which belongs to the user from then on.
Result<Fd> make_incoming(const Shim& shim, const Slot& slot);
// Makes a file that root owns in layout/, with its directories; the slot's uid may read it.
Result<Fd> new_file(const Slot& slot, const std::string& path);

class ImageTools {
 public:
  ImageTools(const Shim& shim, Signals& signals);

  // Why the work must stop: SIGTERM came, or the time for images has passed; "" = continue.
  std::string stopped();

  // The key of an image in a registry, if it can be found out without copying the image. The caller
  // must hold the user's own `turn` while this runs.
  std::optional<std::string> inspect(const std::string& source, const ImageStore::Turn& turn,
                                     const ImageStore& store);
  // Copies to incoming/image, in the form "dir:".
  Result<void> copy(const std::string& source, const Slot& slot, const ImageStore& store);
  // Unpacks from layout/ to out/tree.
  Result<void> unpack_layers(const Slot& slot, const StoreLimits& limits);
  Result<void> unpack_squashfs(const Slot& slot, const StoreLimits& limits);

 private:
  // Every program runs through here: in a cgroup with a memory limit, as the first to be killed
  // when the machine runs out of memory, and with at most one directory to write to. `also_stopped`
  // is called in addition to stopped(). Error invalid_argument: the program failed because of the
  // image, as it would on every node.
  struct Bounds {
    std::string cgroup;
    std::int64_t memory = 0;  // bytes
    std::string writable;     // the only directory that it can write to; empty = none
    // false: it reads only the image, so a failure is the image's fault.
    bool reads_network = false;
  };
  Result<void> run(ChildSpec spec, const Bounds& bounds,
                   const std::function<std::string()>& also_stopped = {});
  Result<std::string> manifest_of(const std::string& source, const ImageStore::Turn& turn,
                                  const ImageStore& store);
  [[nodiscard]] ChildSpec skopeo(const ImageStore& store, const std::string& temporary) const;
  Result<void> unpack(std::vector<std::string> argv, const Slot& slot, const StoreLimits& limits);

  const Shim& shim_;
  Signals& signals_;
  Instant deadline_;
  bool told_to_end_ = false;
};

}  // namespace gantry::runtime
