#include "noded/shim/io/step_io.h"

#include "noded/shim/io/step_stream.h"

namespace gantry::runtime {
namespace {

// For a step without grun at the other end: nobody listens, and nothing is kept.
class NoStepIo : public StepIo {
 public:
  void started(std::uint32_t) override {}
  void output(std::uint32_t, int, std::string_view) override {}
  void closed(std::uint32_t, int) override {}
  void exited(std::uint32_t, ExitStatus, std::string_view) override {}
  void peer(std::uint32_t, std::string_view) override {}
  void aborted(std::uint32_t, std::optional<std::int32_t>, std::string_view) override {}
  void notice(std::string_view, Notice) override {}
  [[nodiscard]] bool full() const override { return false; }
  [[nodiscard]] int fd() const override { return -1; }
  [[nodiscard]] short events() const override { return 0; }
  void ready(short, StepControl&) override {}
  void look_at_input(const StepControl&) override {}
  [[nodiscard]] bool lost() const override { return false; }
  void finish(const ExitRecord&) override {}
};

}  // namespace

Result<std::unique_ptr<StepIo>> make_step_io(const Shim& shim, const StepRequest& request) {
  if (request.io_address.empty()) return std::make_unique<NoStepIo>();
  return dial_step_stream(shim.setup.node, request);
}

}  // namespace gantry::runtime
