// Instantiates the JSON form of some requests, which only the test of options needs.
#include "common/codec/define.h"
#include "common/proto/messages.h"

namespace gantry {

template std::string codec::to_json<proto::SubmitJob>(const proto::SubmitJob&, codec::JsonStyle);
template std::string codec::to_json<proto::StepCreate>(const proto::StepCreate&, codec::JsonStyle);
template std::string codec::to_json<proto::CancelJobs>(const proto::CancelJobs&, codec::JsonStyle);
template std::string codec::to_json<proto::ListJobs>(const proto::ListJobs&, codec::JsonStyle);
template std::string codec::to_json<proto::ListNodes>(const proto::ListNodes&, codec::JsonStyle);
template std::string codec::to_json<proto::QueryHistory>(const proto::QueryHistory&,
                                                         codec::JsonStyle);

}  // namespace gantry
