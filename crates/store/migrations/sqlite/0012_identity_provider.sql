-- What a token of the identity provider must name, if the project says so.
ALTER TABLE projects ADD COLUMN jwt_issuer TEXT;
ALTER TABLE projects ADD COLUMN jwt_audience TEXT;
